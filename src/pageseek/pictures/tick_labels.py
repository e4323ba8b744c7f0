"""Where the labels of an axis stand, and what they say: round numbers and moments, computed exactly."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa

from pageseek.pictures.exact import WIDEST, Number
from pageseek.pictures.figures import cut

FIXED, SCIENTIFIC = 18, 12  # characters of a number that is written so
SMALL = Decimal("1e-4")  # below it, zeros behind the point are not written out
STEPS = (10, 20, 25, 50)  # tenths of the steps between labels, times a power of ten
ZONE = re.compile(r"(Z|[+-]\d{2}:?\d{2})$")
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def round_numbers(
    least: Number, most: Number, one: int, wanted: int
) -> tuple[list[tuple[Fraction, str]], str]:
    """Numbers in units of which `one` is 1, with labels; and what the labels leave out, if they do."""
    whole = isinstance(least, int)
    if least == most:
        said = _decimal(Fraction(least), one) if whole else Decimal(f"{least:.6g}")
        labels, rest = _labels([said])
        return [(Fraction(least), labels[0])], rest
    low, high = Fraction(least), Fraction(most)
    step = _step((high - low) / wanted, whole)
    places = range(math.ceil(low / step), math.floor(high / step) + 1)
    labels, rest = _labels([_decimal(place * step, one) for place in places])
    return [(place * step, label) for place, label in zip(places, labels, strict=True)], rest


def _step(least: Fraction, whole: bool) -> Fraction:
    """The least round step that is not below `least`; `whole`: an integer."""
    power = Fraction(10) ** (math.floor(math.log10(least)) - 1)
    while True:
        for step in (Fraction(tenths) * power for tenths in STEPS):
            if step >= least and not (whole and step.denominator > 1):
                return step
        power *= 10


def _decimal(value: Fraction, one: int) -> Decimal:
    """A number in units of which `one` is 1."""
    made = WIDEST.divide(Decimal(value.numerator), Decimal(value.denominator * one))
    return WIDEST.normalize(made)


def _labels(numbers: list[Decimal]) -> tuple[list[str], str]:
    """The numbers in as few digits as tell all of them exactly. Long ones are differences from a number, which is said once."""
    largest = max(map(abs, numbers), default=Decimal(0))
    fixed = [_fixed(number) for number in numbers]
    if max(map(len, fixed), default=0) <= FIXED and not 0 < largest < SMALL:
        return fixed, ""
    scientific = [_scientific(number) for number in numbers]
    if max(map(len, scientific), default=0) <= SCIENTIFIC:
        return scientific, ""
    span = max(numbers) - min(numbers)
    base = numbers[0]
    if span:
        power = Decimal(1).scaleb(span.adjusted() + 1)  # a round number below all
        base = WIDEST.multiply(WIDEST.divide(base, power).to_integral_value("ROUND_FLOOR"), power)
    said = min(_scientific(base), _fixed(base), key=len)
    return [
        f"+{_fixed(WIDEST.subtract(number, base))}" for number in numbers
    ], f"labels add to {said}"


def _fixed(number: Decimal) -> str:
    return f"{number:,f}"


def _scientific(number: Decimal) -> str:
    if not number:
        return "0"
    sign, digits, _ = WIDEST.normalize(number).as_tuple()
    rest = "".join(map(str, digits[1:]))
    return f"{'-' * sign}{digits[0]}{'.' * bool(rest)}{rest}e{number.adjusted():+03}"


def moments(
    least: int, most: int, kind: pa.DataType, wanted: int
) -> tuple[list[tuple[int, str]], str]:
    """Moments with labels as fine as their distance asks for; and the day, if it is the same of all and they are fine."""
    if pa.types.is_date32(kind):
        steps = {"day": 1}
    elif pa.types.is_date64(kind):
        steps = {"day": 86_400_000}
    else:
        one = UNITS[kind.unit]
        fine = {unit: one // parts for unit, parts in UNITS.items() if parts <= one}
        steps = {"day": 86_400 * one} | fine
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        steps.pop("day")
    finest = list(steps.items())[-1]
    if least == most:
        unit, _ = next((one for one in steps.items() if least % one[1] == 0), finest)
        found = [least]
    else:
        between = max((most - least) // (wanted - 1), 1)
        unit, step = next((one for one in steps.items() if one[1] <= between), finest)
        first = -(-least // step) * step
        found = list(range(first, most + 1, max(between // step, 1) * step))
    said = [_moment(value, kind, unit) for value in found]
    days = {day for day, _ in said}
    if len(found) > 1 and len(days) == 1 and all(clock for _, clock in said):
        day = days.pop()
        labels = [clock for _, clock in said]
        return list(zip(found, labels, strict=True)), f"on {day}" if day else ""
    return [(value, f"{day} {clock}".strip()) for value, (day, clock) in zip(found, said, strict=True)], ""  # fmt: skip


def _moment(value: int, kind: pa.DataType, unit: str) -> tuple[str, str]:
    """The day and the time of day of a moment; empty where it has none, or is beyond the calendar."""
    if pa.types.is_duration(kind):
        seconds, part = divmod(value, UNITS[kind.unit])
        return "", f"{_span(seconds)}{_fraction(part, kind.unit, unit)}"
    try:
        scalar = pa.scalar(value, pa.int32() if kind.bit_width == 32 else pa.int64())
        made = str(scalar.cast(kind).cast(pa.string()).as_py())
    except pa.ArrowInvalid:  # no zone of this machine
        made = str(scalar.cast(pa.timestamp(kind.unit)).cast(pa.string()).as_py())
    if made.startswith("<"):
        return "", ""
    if pa.types.is_time(kind):
        day, clock = "", made
    else:
        day, _, clock = made.partition(" ")
    clock, _, rest = ZONE.sub("", clock).partition(".")
    if unit == "day" or not clock:
        return day, ""
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]
    return day, f"{clock}.{rest[:digits]}" if digits else clock


def _fraction(rest: int, kept: str, unit: str) -> str:
    """The part of a second, in the digits of a unit."""
    digits = len(str(UNITS[unit])) - 1
    return "." + f"{rest:0{len(str(UNITS[kept])) - 1}}"[:digits] if digits else ""


def _span(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    clock = str(dt.timedelta(seconds=rest))
    return f"{days:,} {'day' if days == 1 else 'days'}, {clock}" if days else clock


def shortened(text: str, longest: int) -> str:
    """A text for a label, cut in its middle: texts that begin alike differ in their ends."""
    text = cut(text, 10_000)
    if len(text) <= longest:
        return text
    end = (longest - 1) // 2
    return f"{text[: longest - 1 - end]}…{text[len(text) - end :]}"
