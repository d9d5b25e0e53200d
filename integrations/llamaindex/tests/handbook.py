"""A small set of Chinese documents, and questions with the document that answers each."""

from __future__ import annotations

from llama_index.core import Document

TEXTS = {
    "deploy": (
        "部署手册。所有服务统一使用 Docker Compose 部署，不再使用虚拟机。上线之前必须在预发布环境完成回归测试，"
        "由值班工程师签字确认。回滚时先切换流量，再恢复上一个镜像版本。镜像保存在内部仓库，保留最近三十个版本。"
    ),
    "leave": (
        "请假制度。员工请年假需要提前三个工作日在系统里提交申请，由直属主管审批。病假可以事后补交医院证明。"
        "婚假为十五天，产假按照当地政策执行。未经批准擅自离岗视为旷工，累计三天将按照规定处理。"
    ),
    "travel": (
        "差旅报销规定。出差乘坐高铁二等座或者飞机经济舱，住宿标准为每晚不超过五百元。"
        "报销单须附发票原件，在回程后十个工作日内提交财务部。超过标准的部分由个人承担，特殊情况需要总监批准。"
    ),
    "security": (
        "信息安全守则。密码至少十二位，每九十天更换一次，禁止把口令写在代码仓库里。"
        "离开座位时必须锁屏。发现钓鱼邮件请立即转发给安全小组，不要点击其中的链接，也不要回复发件人。"
    ),
    "canteen": (
        "食堂安排。午餐供应时间为十一点半到一点，周三提供素食窗口。刷工牌付费，余额不足可以在前台充值。"
        "请不要把餐具带出食堂，吃不完的饭菜请倒入指定的回收桶。"
    ),
    "database": (
        "数据库运维。主库位于上海机房，备库位于北京机房，采用半同步复制。每天凌晨两点进行全量备份，"
        "备份文件加密之后上传到对象存储。慢查询日志每周由数据库管理员分析一次，并给出索引优化建议。"
    ),
}
QUESTIONS = {
    "怎么部署服务？": "deploy",
    "婚假有多少天": "leave",
    "住酒店每晚最多能报销多少钱": "travel",
    "收到钓鱼邮件怎么办？": "security",
    "素食窗口是哪一天": "canteen",
    "数据库什么时候备份": "database",
}


def make_documents() -> list[Document]:
    return [
        Document(id_=name, text=text, metadata={"topic": name, "length": len(text)}) for name, text in TEXTS.items()
    ]
