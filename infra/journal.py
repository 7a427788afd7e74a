"""What nobody may do to the journal, whatever their own policies say.

By IAM's names.  A transaction is judged by each of its writes, so these cover its updates and deletes too.
"""

from __future__ import annotations

NEVER = (
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:PartiQLInsert",
    "dynamodb:PartiQLUpdate",
    "dynamodb:PartiQLDelete",
)
