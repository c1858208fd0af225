"""Tables and columns of pandas, polars and pyarrow, read as numbers, documents and rows."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, cast

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from narwhals import dependencies

from sktensor_dp.checks.errors import call_unquoted

BACKENDS = ("pandas", "polars", "pyarrow")
# Packages whose collections are lazy.
DASK = ("dask", "dask_expr")
# Lazy queries of other packages, by a test of their type, and the method that computes a table.
LAZY = {
    dependencies.is_polars_lazyframe: "collect",
    dependencies.is_narwhals_lazyframe: "collect",
    dependencies.is_duckdb_relation: "df",
    dependencies.is_pyspark_dataframe: "toPandas",
    dependencies.is_pyspark_connect_dataframe: "toPandas",
}

# Kinds of data are recognised by type, not by attributes: any column of a data frame is an
# attribute too.


def is_dask(data: object) -> bool:
    """True for a collection of Dask; reads its class, without importing Dask."""
    return any(kind.__module__.partition(".")[0] in DASK for kind in type(data).__mro__)


def is_table(data: object) -> bool:
    """True for a data frame in memory, of any library."""
    return dependencies.is_into_dataframe(as_arrow_table(data))


INDEX = "_sktensor_dp_index"  # attribute of counts: index of the texts that they were counted in


def index_of(data: object) -> Any:
    """Index of a table or column of pandas, or of the texts that `data` counts; None of others."""
    if hasattr(type(data), "iloc") and not is_dask(data):
        return cast(Any, data).index
    return vars(data).get(INDEX) if sp.issparse(data) else None


def refuse_other_row_order(X: object, beside: object, name: str = "groups") -> None:
    """Raise ValueError if the index of a pandas column has labels of the rows in another order."""
    ours, theirs = index_of(X), index_of(beside)
    if ours is None or theirs is None:
        return
    if ours.nlevels != theirs.nlevels or len(ours) != len(theirs) or ours.equals(theirs):
        return
    # If one index alone counts rows, as after `reset_index`, it shares some labels by chance.
    ours_counts, theirs_counts = (type(one).__name__ == "RangeIndex" for one in (ours, theirs))
    shared = ours.isin(theirs)
    if shared.all() or (shared.any() and ours_counts == theirs_counts):
        rows = "texts.index" if sp.issparse(X) else "X.index"
        raise ValueError(
            f"{name} must be in the order of the rows: its index has labels of theirs in other "
            f"places. Pass {name}.reindex({rows}), which finds the item of each row by the index; "
            f"only where each already stands beside its row, {name}.set_axis({rows})."
        )


def refuse_lazy(data: object, name: str) -> None:
    """Raise TypeError for a lazy query that has no data yet, such as a ``LazyFrame`` of polars."""
    for is_lazy, compute in LAZY.items():
        if is_lazy(data):
            kind = type(data)
            raise TypeError(
                f"{name} is a {kind.__module__.split('.')[0]}.{kind.__name__}, which is not "
                f"computed yet. Pass {name}.{compute}()."
            )


def _wrapped(data: object, name: str) -> Any:
    """Wrap a table or column of pandas, polars or pyarrow by narwhals; None for anything else."""
    refuse_lazy(data, name)
    # Skip plain types, which are no frames, and lazy Dask collections.
    is_plain = isinstance(data, np.ndarray | np.generic | list | tuple | str | bytes)
    if is_plain or sp.issparse(data) or is_dask(data):
        return None
    wrapped = call_unquoted(
        lambda: nw.from_native(
            as_arrow_table(data), eager_only=True, allow_series=True, pass_through=True
        ),
        name,
    )
    return wrapped if isinstance(wrapped, nw.DataFrame | nw.Series) else None


def named_columns(table: Any, name: str) -> list[tuple[str, Any]]:
    """Names and arrays of the columns of a data frame in memory."""
    if hasattr(type(table), "iloc"):  # names may be equal
        places = range(table.shape[1])
        arrays = [call_unquoted(table.iloc[:, place].to_numpy, name) for place in places]
    else:
        table = _wrapped(table, name)
        arrays = [call_unquoted(table[one].to_numpy, name) for one in table.columns]
    return list(zip(map(str, table.columns), arrays, strict=True))


def as_arrow_table(data: object) -> Any:
    """Convert pyarrow arrays and record batches to chunked arrays and tables; others stay."""
    if type(data).__module__.split(".")[0] != "pyarrow":
        return data
    import pyarrow as pa

    if isinstance(data, pa.Array):
        return pa.chunked_array([data])
    return pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data


def kinds_of(data: object, name: str) -> list[tuple[str, str]]:
    """Kind ("text", "time" or "other") and name of type of each column of a table, column or array.

    Empty for anything else.
    """
    refuse_lazy(data, name)
    dtypes: Any = getattr(data, "dtypes", None)  # of a table
    if dtypes is None and hasattr(data, "dtype"):
        dtypes = [data.dtype]
    elif dtypes is not None and np.ndim(dtypes) == 0:  # of a column
        dtypes = [dtypes]
    # Types of numpy and pandas columns say their kind without a look at the objects.
    if dtypes is not None and all(isinstance(getattr(one, "kind", None), str) for one in dtypes):
        return [(_kind_of_dtype(dtype), str(dtype)) for dtype in dtypes]
    wrapped = _wrapped(data, name)
    if wrapped is None:
        return []
    is_column = isinstance(wrapped, nw.Series)
    dtypes = [wrapped.dtype] if is_column else wrapped.schema.values()
    # Only the name of the type: the values of a categorical column are data.
    return [(_kind_of_narwhals(dtype), type(dtype).__name__) for dtype in dtypes]


def _kind_of_dtype(dtype: Any) -> str:
    """Kind of a type of numpy or pandas."""
    if dtype.kind in "US" or getattr(dtype, "type", None) is str:
        return "text"
    # Periods of pandas are objects by their letter.
    return "time" if dtype.kind in "mM" or str(dtype).startswith("period") else "other"


def _kind_of_narwhals(dtype: Any) -> str:
    """Kind of a type of narwhals."""
    if isinstance(dtype, nw.String | nw.Categorical | nw.Enum | nw.Binary):
        return "text"
    return "time" if dtype.is_temporal() else "other"


def column_names(data: Any) -> list[str] | None:
    """Names of the columns of a table; None for other data, and for columns numbered from 0.

    ValueError for other labels, which scikit-learn does not compare with those of the fit.
    """
    if is_dask(data):
        data = data._meta
    if not is_table(data):
        return None
    # Of pandas; other tables are read by narwhals.
    names = list(data.columns if hasattr(type(data), "iloc") else _wrapped(data, "X").columns)
    if all(isinstance(one, str) for one in names):
        return names
    if names != list(range(len(names))):
        raise ValueError(
            "The columns of a table must be named by text, or numbered 0, 1, 2, ... in this order: "
            "other labels, such as ids, are compared nowhere. table.set_axis(table.columns.map(str)"
            ", axis=1) makes them text."
        )
    return None


def refuse_other_columns(data: Any, names: Any, name: str = "X") -> None:
    """Raise ValueError if a table has names of columns that are not `names`, in their order.

    For tables that `checked_table` does not see; there scikit-learn compares the names.
    """
    columns = column_names(data)
    if names is None or columns is None or columns == list(names):
        return
    has = f"{len(columns)} of {len(names)} columns"
    for place, (column, expected) in enumerate(zip(columns, names, strict=False)):
        if column != expected:
            has = f"{column!r} as column {place}, not {expected!r}"
            break
    raise ValueError(
        f"The feature names should match those that came before, in their order: {name} has {has}."
    )


def check_feature_names(given: Any, known: Any, n_columns: int) -> None:
    """Raise ValueError unless names that are given may be those of a fit's columns.

    Titles may stand for the names that a fit knows; a name of another column is of other data.
    """
    if len(given) != n_columns:
        raise ValueError(f"feature_names must have {n_columns} entries, got {len(given)}.")
    places = {} if known is None else {name: place for place, name in enumerate(known)}
    for place, name in enumerate(given):
        if places.get(name, place) != place:
            raise ValueError(
                f"feature_names must be in the order of the fit's columns, or left out, as the fit "
                f"knows its names; got {name!r} for column {place}, and it is column "
                f"{places[name]}."
            )


def as_numbers(data: object, name: str) -> Any:
    """Convert a table or column to a numpy array; return anything else as given."""
    wrapped = _wrapped(data, name)
    return data if wrapped is None else call_unquoted(wrapped.to_numpy, name)


def as_documents(data: object, name: str) -> Any:
    """Convert a column to a list of texts; return anything else as given."""
    wrapped = _wrapped(data, name)
    return call_unquoted(wrapped.to_list, name) if isinstance(wrapped, nw.Series) else data


def taken(data: Any, rows: Any) -> Any:
    """Select `rows` (indices or a slice) of an array, sparse matrix, table, column or list."""
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    wrapped = _wrapped(data, "X")
    if wrapped is not None:
        places = rows if isinstance(rows, slice) else np.asarray(rows, dtype=np.intp).tolist()
        return wrapped[places].to_native()
    if hasattr(data, "shape") or isinstance(rows, slice):
        return data[rows]
    return [data[row] for row in rows]


def series_like(series: Any, values: Any) -> Any:
    """Column of new values with the name, and in pandas the index, of another one."""
    made = nw.from_native(series, series_only=True)
    column = nw.new_series(made.name, list(values), backend=made.implementation).to_native()
    return column.set_axis(series.index) if hasattr(series, "index") else column


def new_frame(columns: Mapping[str, Any], backend: str = "pandas") -> Any:
    """Build a table of one of the BACKENDS from lists by column name; ImportError without it."""
    if find_spec(backend) is None:
        raise ImportError(f"a table of {backend} needs it; install it with: pip install {backend}")
    return nw.from_dict(dict(columns), backend=cast(Any, backend)).to_native()
