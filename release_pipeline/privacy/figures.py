"""How figures that are not exact are written, for everybody who writes them."""


def show_figure(number: float) -> str:
    """A figure that is not exact, with as many digits as it is good for.

    >>> show_figure(0.12345), show_figure(999.4), show_figure(999.7), show_figure(-1234.5)
    ('0.123', '999', '1,000', '-1,234')
    """
    return f"{number:,.0f}" if abs(number) >= 999.5 else f"{number:.3g}"
