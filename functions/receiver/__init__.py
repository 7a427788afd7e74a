"""The other end of effects and alerts, where drills are counted: its rules, and itself as a Lambda function."""
