"""Compare our proxy with the npm reference proxy by hand: `python tests/differential/run.py --answers 200000`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]

from diff_campaign import Campaign, Figures  # noqa: E402 - the path is set above
from diff_pair import pair  # noqa: E402 - the path is set above

PROGRESS_SECONDS = 5.0


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=20_000, help="answers to compare")
    parser.add_argument("--per-document", type=int, default=100, help="questions on each document")
    parser.add_argument("--seed", default=time.strftime("%Y-%m-%d"), help="documents and questions follow from it")
    parser.add_argument("--document", type=int, help="only the document of this number")
    parser.add_argument("--shrink", type=int, default=10, help="mismatches to make small")
    parser.add_argument(
        "--setting", action="append", default=[], metavar="NAME=VALUE", help="a variable for both proxies"
    )
    return parser.parse_args()


def reporter(answers: int) -> object:
    """Return a function that prints a line of progress now and then."""
    last = time.monotonic()

    def progress(figures: Figures) -> None:
        nonlocal last
        if time.monotonic() - last >= PROGRESS_SECONDS:
            last = time.monotonic()
            rate = figures.answers / max(figures.seconds, 0.001)
            done = f"{figures.answers} of {answers} answers, {rate:.0f} a second"
            print(f"{done}, {len(figures.mismatches)} mismatches", flush=True)

    return progress


def main() -> int:
    """Run, print the figures, and return 1 when an answer differed or an exclusion did not occur."""
    options = arguments()
    settings = dict(each.split("=", 1) for each in options.setting)
    print(f"seed {options.seed}", flush=True)
    with pair({"version": 2, "features": []}, settings) as both:
        campaign = Campaign(both, options.seed, trusting=settings.get("TRUST_PROXY", "false") != "false")
        if options.document is not None:
            campaign.document(options.document, options.per_document)
        else:
            campaign.random(options.answers, options.per_document, reporter(options.answers))  # type: ignore[arg-type]
            campaign.fixed()
            campaign.targeted()
        print(campaign.figures.report())
        if campaign.figures.mismatches:
            print(campaign.explain_mismatches(options.shrink))
    missing = campaign.figures.missing() if options.document is None else []
    for row in missing:
        print(f"the exclusion `{row.name}` did not occur: take it out of the table")
    return 1 if missing or campaign.figures.mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
