"""Reads a report with other programs, for tests/formats.rs: one JSON object in, one out."""

import json
import sys
import xml.etree.ElementTree as ElementTree

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus


def families(parsed):
    """The metric families by name: help, unit, type and samples."""
    return {
        family.name: {
            "type": family.type,
            "help": family.documentation,
            "unit": family.unit,
            "samples": [
                {"name": sample.name, "labels": sample.labels, "value": sample.value, "timestamp": sample.timestamp}
                for sample in family.samples
            ],
        }
        for family in parsed
    }


def page(text):
    """The elements of a page in order, each with its name, its attributes and its own text."""
    root = ElementTree.fromstring(text)
    return [[element.tag.split("}")[-1], element.attrib, element.text or ""] for element in root.iter()]


ask = json.load(sys.stdin)
json.dump(
    {
        "openmetrics": [families(openmetrics(text)) for text in ask["openmetrics"]],
        "prometheus": [families(prometheus(text)) for text in ask["openmetrics"]],
        "pages": [page(text) for text in ask["pages"]],
    },
    sys.stdout,
)
