# The service and the worker: `holdfast serve` and `holdfast worker` on the same image.
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

WORKDIR /app

# What changes seldom comes first: an edit of the source installs no package again.
COPY requirements/runtime.txt requirements/runtime.txt
RUN pip install --require-hashes -r requirements/runtime.txt

COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-deps .

COPY examples examples
RUN useradd --create-home --uid 10001 holdfast
USER holdfast

EXPOSE 8000
CMD ["holdfast", "--help"]
