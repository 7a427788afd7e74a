"""What the fork server loads once, so that a unit's process starts in milliseconds: the worker's handler and its jobs.

Imported by the fork server only.  It builds the worker here, clients and all, which no other module may do at import:
each unit's process is a copy of this one.
"""

from functions.worker.handler import worker

worker()
