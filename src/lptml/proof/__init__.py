"""Proof: how little can be violated at all.

A lower bound on the cost of every metric, with a certificate that a few independent lines check. For two and
three features branch and bound over cells of metrics goes on until the best metric is proven to be the best;
for more, small contradictions are found by the thousand and packed by a linear program.
"""

from lptml.proof.certificate import (
    CellCertificate,
    Certificate,
    Certified,
    LabelCertificate,
    PackingCertificate,
    Proof,
)
from lptml.proof.certification import CertificationInterruptedWarning, certify
from lptml.proof.files import check_cost, read_proof, write_proof
from lptml.proof.labels import certify_labels
from lptml.proof.verify import CertificateError

__all__ = [
    "CellCertificate",
    "Certificate",
    "CertificateError",
    "CertificationInterruptedWarning",
    "Certified",
    "LabelCertificate",
    "PackingCertificate",
    "Proof",
    "certify",
    "certify_labels",
    "check_cost",
    "read_proof",
    "write_proof",
]
