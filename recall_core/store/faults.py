"""SQLite's errors about a file, told in words: what is wrong with it, and the way out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import apsw

from ..errors import InvalidInputError, NotADatabaseError, StoreBusyError, StoreError, StoreUnavailableError
from .filesystem import explain_path


@contextlib.contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Turn SQLite's errors about the file into ours."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusyError(f"{path}: other programs kept writing to the file; try again ({error})") from error
    except apsw.NotADBError as error:
        raise NotADatabaseError(f"{path} is no SQLite database; give the path of a memory or of a new file") from error
    except apsw.FullError as error:
        raise StoreUnavailableError(f"{path}: the disk is full; make room, what was being stored is not") from error
    except (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError) as error:
        raise StoreUnavailableError(f"{path} can't be opened for writing: {explain_path(path) or error}") from error
    except apsw.CorruptError as error:
        raise StoreUnavailableError(f"{path} is damaged ({error}); restore a backup of the file") from error
    except apsw.IOError as error:
        raise StoreUnavailableError(f"{path}: reading or writing the file failed ({error})") from error
    except apsw.Error as error:
        raise StoreError(f"{path}: {error}") from error
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{error.object!r:.100} has a lone surrogate in it, which no file can hold") from error
    except UnicodeDecodeError as error:
        raise StoreError(
            f"{path}: another program has stored text that is no UTF-8 ({error}); open the memory again to repair it"
        ) from error
