from __future__ import annotations

import subprocess
import sys
import uuid

from tests.support.aws import client

LOADS_PARAMETERS = """
import sys
from functions.local import moto_repairs
moto_repairs.apply()
import moto.ssm.models
print("moto.ec2" in sys.modules)
"""


def test_parameters_are_served_without_loading_what_ec2_knows_of_machines() -> None:
    told = subprocess.run(
        [sys.executable, "-c", LOADS_PARAMETERS], check=True, capture_output=True, text=True, timeout=60
    )
    assert told.stdout.strip() == "False"


def test_a_question_about_machines_is_answered_all_the_same(moto_endpoint: str) -> None:
    machines = client("ec2", moto_endpoint)
    image = machines.describe_images()["Images"][0]["ImageId"]
    group = uuid.uuid4().hex
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "group", "Value": group}]}]
    machine = machines.run_instances(ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=tags)["Instances"][0]
    asked = {"Key": "tag:group", "Values": [group]}
    sent = client("ssm", moto_endpoint).send_command(DocumentName="AWS-RunShellScript", Targets=[asked])
    assert sent["Command"]["InstanceIds"] == [machine["InstanceId"]]
