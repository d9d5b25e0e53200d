"""Every error that recall_core raises on purpose.

RecallError
├── InvalidInputError(ValueError)     an argument can't be used; the message says what was seen and what to do
├── RecordExistsError                 a record with this id is already stored
├── RecordNotFoundError(LookupError)  no record with this id in this scope
├── ClosedError                       the memory was closed, or belongs to a parent process
├── StoreError                        the file
│   ├── NotADatabaseError             the file is no database, or another program's database
│   ├── SchemaTooNewError             the file was written by a newer version
│   ├── StoreUnavailableError         can't be opened or written: folder, permission, full disk, damage
│   │   └── StoreMovedError           was moved, deleted or replaced while it was open
│   └── StoreBusyError                other writers held the file for longer than the busy timeout
├── EmbeddingError                    vectors
│   ├── EmbedderMismatchError         the file's vectors come from another model
│   ├── ModelNotFoundError            a model's files are missing or damaged
│   ├── ModelDownloadError            a model's files can't be downloaded: network, server, disk
│   ├── EmbedderUnavailableError      the embedder gives no vectors now: network, key, quota; no text is at fault
│   ├── TextRefusedError              the embedder refuses one text
│   ├── PartlyEmbeddedError           some texts of a call have vectors, others do not
│   └── VectorError(ValueError)       a vector of the wrong size, with NaN or infinity, or all zeros
└── RerankError                       a reranker failed, or gave no usable scores
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class RecallError(Exception):
    """Base of all errors raised on purpose by recall_core."""


class InvalidInputError(RecallError, ValueError):
    """An argument can't be used."""


class RecordExistsError(RecallError):
    """A record with this id is already stored."""


class RecordNotFoundError(RecallError, LookupError):
    """No record with this id in this scope."""


class ClosedError(RecallError):
    """The memory was closed, or was opened by the process that this one was forked from."""


class StoreError(RecallError):
    """The database file can't be used as asked."""


class NotADatabaseError(StoreError):
    """The file is no SQLite database, or one that another program made."""


class SchemaTooNewError(StoreError):
    """The file was written by a newer version of recall_core."""


class StoreUnavailableError(StoreError):
    """The file can't be opened, read or written: a folder, a permission, a full disk, damage."""


class StoreMovedError(StoreUnavailableError):
    """The file was moved, deleted or replaced while it was open; opened again, it is what is there now."""


class StoreBusyError(StoreError):
    """Other writers held the file for longer than the busy timeout."""


class EmbeddingError(RecallError):
    """Text could not be turned into vectors, or vectors could not be used."""


class EmbedderMismatchError(EmbeddingError):
    """The file's vectors come from another model than the one that was given."""


class ModelNotFoundError(EmbeddingError):
    """A model's files are missing or damaged."""


class ModelDownloadError(EmbeddingError):
    """A model's files can't be downloaded: the network, the server or the disk."""


class VectorError(EmbeddingError, ValueError):
    """A vector has the wrong number of dimensions, NaN or infinity in it, or no length."""


class EmbedderUnavailableError(EmbeddingError):
    """The embedder gives no vectors: network, key, quota, answers that are none. No text is at fault.

    `retry_after` are the seconds to wait that a provider asked for; `permanent` says that waiting will not help, only
    another key, model or setting.
    """

    def __init__(self, message: str, *, retry_after: float | None = None, permanent: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.permanent = permanent


class TextRefusedError(EmbeddingError):
    """The embedder refuses one text, by a content filter or as too long. Others are not concerned."""


class PartlyEmbeddedError(EmbeddingError):
    """Some texts of a call have vectors, others do not.

    `vectors` holds the vectors that were made, each of shape (dimensions,), by the position of their text in the call;
    `refused` says why a text was refused, by its position. All other texts have none because of `failure`.
    """

    def __init__(
        self,
        message: str,
        *,
        vectors: Mapping[int, NDArray[np.float32]],
        refused: Mapping[int, str],
        failure: EmbeddingError | None = None,
    ) -> None:
        super().__init__(message)
        self.vectors = vectors
        self.refused = refused
        self.failure = failure


class RerankError(RecallError):
    """A reranker failed, or what it gave are no scores."""
