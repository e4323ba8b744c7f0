"""Arguments of lookups and their tasks, often absurd."""

from __future__ import annotations

from typing import Any

import numpy as np

from pageseek._core import codecs, points
from support.random_argument_data import (
    POOL,
    R,
    int64s,
    number,
    small,
)
from support.random_argument_values import form, literals, selection


def of_point_reader() -> tuple[Any, ...]:
    def leaf() -> tuple[Any, ...]:
        n, step = small(6), R.choice((0, 1, 3, 100))
        settings = [one for one in POOL if type(one) is codecs.CodecSettings]
        codec = (
            R.choice(settings)
            if settings
            else codecs.CodecSettings("snappy", None, None, 1, 1 << 20, 1 << 20, False, False)
        )
        starts = (
            int64s(n + 1)
            if R.random() < 0.2
            else (np.arange(n + 1, dtype=np.int64) * step).tobytes()
        )
        places = int64s(n), int64s(n)
        return (
            form(),
            R.choice((0, 1, number())),
            number(),
            codec,
            starts,
            *places,
            number(),
            abs(number()),
            R.random() < 0.3,
        )

    leaves = [leaf() for _ in range(small(4))]
    return leaves, [i for i in range(len(leaves)) if R.random() < 0.7]


def of_point_read() -> tuple[Any, ...]:
    def test() -> tuple[Any, ...]:
        made = form()
        return (
            R.choice((0, 0, 1, number())),
            R.randrange(14),
            R.random() < 0.5,
            R.randrange(2),
            literals(made[2], made[3]),
        )

    chosen = R.choice(
        (np.array([0, 3, 5, 9], np.int64).tobytes(), int64s(2 * small(4)), selection())
    )
    tests = [test() for _ in range(small(4))]
    return (
        R.choice((-1, 0, 3, number())),
        chosen,
        tests,
        R.choice((5, number())),
        R.choice((1 << 20, number())),
    )


def of_point_task() -> tuple[Any, ...]:
    readers = [one for one in POOL if type(one) is points.PointReader]
    fd, chosen, _, _, most = of_point_read()
    return R.choice(readers or [None]), fd, object(), chosen, most, R.choice((0, 9, number()))
