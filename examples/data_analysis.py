"""An uploaded CSV, analysed in stages that share a session: missing values, summary, outliers; failures leave no trace."""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_core.language_models import BaseChatModel

from code_chains import create_code_chain

UPLOAD = "day,visitors\nmon,20\ntue,\nwed,23\nthu,19\nfri,240\nsat,\nsun,22\n"
STAGES = (
    "Load visits.csv into a DataFrame named df with pandas and print how many values are missing in each column.",
    "Drop the rows of df with missing values, keep the rest as df, and print how many rows are left.",
    "Print a summary of the column visitors of df: mean, median, smallest and largest.",
    "Print the outliers: the rows of df whose visitors are more than three times the median of visitors.",
)


def main(model: str | BaseChatModel = "local") -> None:
    """Ask for one stage after the other in one conversation."""
    with TemporaryDirectory() as folder, create_code_chain(model, interpret=False) as chain:
        upload = Path(folder, "upload.csv")
        upload.write_text(UPLOAD)
        for number, stage in enumerate(STAGES, 1):
            result = chain.invoke({"query": stage, "session_id": "visits", "files": {"visits.csv": upload}})
            print(
                f"{number}. {stage}\n{result['output'] or result['execution'].summary}\n({result['verdict'].status})\n"
            )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
