"""Every rule of the protocols that can be taken away alone, and the tests that find its absence."""

from __future__ import annotations

from tests.mutations.planting import Edit, Mutation

_COMPLETIONS = "functions/records/completions.py"
_EFFECTS = "functions/records/effects.py"
_LEASES = "functions/records/leases.py"
_LEDGER = "functions/sdk/ledger.py"
_ENDINGS = "functions/worker/endings.py"
_PROTOCOL = "functions/worker/protocol.py"
_WAITING = "functions/worker/waiting.py"

MUTATIONS = (
    Mutation(
        name="transaction-split",
        breaks="an attempt's end and the freeing of its lease are one transaction",
        edits=(
            Edit(
                file=_COMPLETIONS,
                old="            self._database.transact([put, freeing(lease, now)])\n",
                new="            self._database.put(put)\n            self._database.change(freeing(lease, now))\n",
            ),
        ),
        tests=(
            "tests/scenarios/test_worker_takeover.py::test_whatever_happens_at_a_call_the_unit_ends_once_and_the_dead_attempt_is_told[6-die_after]",
        ),
    ),
    Mutation(
        name="take-without-owner",
        breaks="only a lock that nobody owns is taken",
        edits=(Edit(file=_LEASES, old='every(Absent("owner"), unclaimed)', new="unclaimed"),),
        tests=("tests/records/test_leases.py::test_a_held_lock_shows_its_holder_and_stays_as_it_is[memory]",),
    ),
    Mutation(
        name="dead-holder-dropped",
        breaks="who takes over from the dead carries them along until they are journalled",
        edits=(
            Edit(
                file=_LEASES,
                old='            values["lost"] = Appended((_dead_item(dead),))\n',
                new="            pass\n",
            ),
        ),
        tests=(
            "tests/records/test_leases.py::test_a_take_over_carries_every_dead_holder_along_until_the_lock_is_freed[memory]",
            "tests/scenarios/test_worker_takeover.py::test_a_dead_holder_of_another_unit_under_the_lock_is_journalled_at_its_own_unit",
        ),
    ),
    Mutation(
        name="attempts-by-number",
        breaks="an attempt is named by its owner, not by its number",
        edits=(
            Edit(
                file=_COMPLETIONS,
                old="        put = _put(unit_id, entry, ttl)\n",
                new="        put = _numbered(self._database, _put(unit_id, entry, ttl))\n",
            ),
            Edit(
                file=_COMPLETIONS,
                old="            self._database.transact([_put(unit_id, attempt, ttl), completion])\n",
                new=(
                    "            numbered = _numbered(self._database, _put(unit_id, attempt, ttl))\n"
                    "            self._database.transact([numbered, completion])\n"
                ),
            ),
            Edit(
                file=_COMPLETIONS,
                old="def _owner(item: Item | None)",
                new=(
                    "def _numbered(database: Database, put: Put) -> Put:\n"
                    '    if not put.item["entry"].startswith("attempt#"):\n'
                    "        return put\n"
                    '    found = database.find(Find(COMPLETIONS.name, ("unit_id", put.item["unit_id"])))\n'
                    '    number = sum(item["entry"].startswith("attempt#") for item in found)\n'
                    '    return Put(put.table, {**put.item, "entry": f"attempt#{number + 1}"}, put.condition)\n\n\n'
                    "def _owner(item: Item | None)"
                ),
            ),
        ),
        tests=(
            "tests/records/test_completions.py::test_a_dead_attempt_is_journalled_once_by_whoever_comes_first[memory]",
        ),
    ),
    Mutation(
        name="token-deleted",
        breaks="a freed lock keeps its token, so that it always rises",
        edits=(Edit(file=_LEASES, old="remove=_HELD)\n", new='remove=(*_HELD, "token"))\n'),),
        tests=(
            "tests/records/test_leases.py::test_the_token_rises_from_holder_to_holder[memory]",
            "tests/records/test_leases.py::test_a_freed_lock_keeps_nothing_but_its_token[memory]",
        ),
    ),
    Mutation(
        name="take-over-by-time",
        breaks="an effect in progress is taken over by a higher token, never by time",
        edits=(
            Edit(
                file=_LEDGER,
                old="        if found.token >= self._claim.token:\n",
                new="        if (self._clock.now() - found.called_at).total_seconds() < 900:\n",
            ),
            Edit(
                file=_EFFECTS,
                old='Equals("owner", seen.owner), Below("token", token))',
                new='Equals("owner", seen.owner))',
            ),
        ),
        tests=(
            "tests/unit/sdk/test_ledger.py::test_c01_an_attempt_of_a_lower_token_does_not_call_what_a_later_one_has_begun",
            "tests/unit/sdk/test_ledger.py::test_d01_what_a_killed_attempt_left_in_progress_is_taken_at_once_by_a_higher_token",
        ),
    ),
    Mutation(
        name="deleted-on-exception",
        breaks="an exception out of a call leaves its effect unknown",
        edits=(
            Edit(
                file=_LEDGER,
                old="        if isinstance(exception, NotApplied) and not self.in_doubt:\n",
                new="        if isinstance(exception, Exception):\n",
            ),
        ),
        tests=(
            "tests/unit/sdk/test_calls.py::test_any_exception_out_of_a_call_leaves_it_unknown_in_the_ledger[RuntimeError]",
        ),
    ),
    Mutation(
        name="success-over-the-unknown",
        breaks="a unit does not succeed while a call of an earlier attempt is unknown",
        edits=(
            Edit(
                file=_PROTOCOL,
                old=(
                    "        if ran.ending is Ending.SUCCEEDED:\n"
                    "            ran = self._endings.settled(unit, ran, last=number >= job.attempts)\n"
                ),
                new="",
            ),
        ),
        tests=(
            "tests/scenarios/test_worker_doubts.py::test_of_a_call_that_the_job_does_not_make_again_a_person_is_asked_after_the_last_attempt[False-happened]",
        ),
    ),
    Mutation(
        name="skip-of-a-started-unit",
        breaks="only a unit that never started is skipped",
        edits=(
            Edit(
                file=_WAITING, old="if conclusion is None or seen.started or any(", new="if conclusion is None or any("
            ),
        ),
        tests=(
            "tests/scenarios/test_worker_overlap.py::test_a_unit_that_has_begun_is_never_skipped_and_waits_for_its_next_attempt",
        ),
    ),
    Mutation(
        name="skip-of-a-dead-attempt",
        breaks="a unit whose dead attempt is only in the lease yet has started",
        edits=(
            Edit(
                file=_WAITING,
                old=" or any(dead.unit_id == seen.row.unit_id for dead in lease.lost):\n",
                new=":\n",
            ),
        ),
        tests=(
            "tests/scenarios/test_worker_overlap.py::test_a_unit_whose_dead_attempt_is_only_in_the_lease_yet_has_begun_and_is_not_skipped",
        ),
    ),
    Mutation(
        name="skip-for-a-complete-unit",
        breaks="a unit is skipped only while the holder's unit is open",
        edits=(
            Edit(
                file=_WAITING,
                old="        if self._stores.completions.read(lease.unit_id).completion is not None:\n",
                new="        if lease is None:\n",
            ),
        ),
        tests=("tests/scenarios/test_worker_overlap.py::test_a_lease_of_a_unit_that_is_complete_skips_nobody",),
    ),
    Mutation(
        name="skip-without-the-lease",
        breaks="a skip is written only while the lease that was seen stands",
        edits=(
            Edit(
                file=_COMPLETIONS,
                old="[_put(unit_id, completion, ttl), still_as_seen(holder)]",
                new="[_put(unit_id, completion, ttl)]",
            ),
        ),
        tests=(
            "tests/records/test_completions.py::test_a_unit_is_not_skipped_for_a_holder_that_is_gone[memory-freed]",
        ),
    ),
    Mutation(
        name="lost-though-completed",
        breaks="no attempt of a completed unit is journalled as lost",
        edits=(
            Edit(
                file=_COMPLETIONS,
                old="            self._database.transact([_put(unit_id, attempt, ttl), completion])\n",
                new="            self._database.transact([_put(unit_id, attempt, ttl)])\n",
            ),
            Edit(
                file=_COMPLETIONS,
                old="            return refused.refusals[1] is None\n",
                new="            return refused.refusals[0] is not None\n",
            ),
        ),
        tests=("tests/records/test_completions.py::test_a_completed_unit_gets_no_lost_attempt[memory]",),
    ),
    Mutation(
        name="word-for-any-call",
        breaks="a person's word holds for the one call that it answers",
        edits=(
            Edit(
                file=_LEDGER,
                old="self._claim.words.get((found.key, found.owner))",
                new="next((word for (key, _), word in self._claim.words.items() if key == found.key), None)",
            ),
        ),
        tests=(
            "tests/unit/sdk/test_ledger.py::test_did_not_happen_allows_one_call_and_the_next_one_in_doubt_needs_another_word[memory]",
        ),
    ),
    Mutation(
        name="review-without-message",
        breaks="a review raises `triggers`, so that a worker hears of it",
        edits=(
            Edit(
                file="functions/cli/decide.py",
                old='    stage.stores.inventory.trigger(row.unit_id, f"review-{review.number:04d}")\n',
                new="",
            ),
        ),
        tests=("tests/unit/cli/test_decide.py::test_the_answer_is_written_and_the_unit_goes_on_by_it",),
    ),
    Mutation(
        name="stale-acknowledges",
        breaks="a worker whose lease is gone returns the message",
        edits=(
            Edit(
                file=_ENDINGS,
                old="        return Return(after_s=RETURNS_SOON_S)\n",
                new="        return Acknowledge()\n",
            ),
        ),
        tests=(
            "tests/unit/worker/test_endings.py::test_whatever_comes_after_the_lease_is_lost_is_kept_as_stale_changes_nothing_and_returns",
        ),
    ),
    Mutation(
        name="release-without-owner",
        breaks="only its holder frees a lease",
        edits=(
            Edit(
                file=_LEASES,
                old="update, still_mine(lease.owner, lease.token))\n\n\ndef freed_by_us",
                new='update, Condition("still_mine", Absent("nothing")))\n\n\ndef freed_by_us',
            ),
        ),
        tests=(
            "tests/records/test_leases.py::test_c03_a_release_of_the_old_holder_leaves_the_new_one_holding[memory]",
        ),
    ),
    Mutation(
        name="completion-before-effects",
        breaks="the completion is written after every effect",
        edits=(
            Edit(
                file=_PROTOCOL,
                old="        ran = self._attempt(unit, job, number, context, extend_messages)\n",
                new=(
                    "        self._endings.succeeded(unit, Ran(ending=Ending.SUCCEEDED), started)\n"
                    "        ran = self._attempt(unit, job, number, context, extend_messages)\n"
                ),
            ),
        ),
        tests=(
            "tests/scenarios/test_worker_effects.py::test_an_attempt_that_raised_leaves_its_effect_to_the_next_and_the_receiver_gets_the_same_key",
        ),
    ),
    Mutation(
        name="read-before-the-lease",
        breaks="the completion is looked for after the lease is held",
        edits=(
            Edit(
                file=_PROTOCOL,
                old="        lease = self._take(message, job)\n",
                new=(
                    "        early = read(self._stores, message, job, self._version, self._clock.now())\n"
                    "        lease = self._take(message, job)\n"
                ),
            ),
            Edit(
                file=_PROTOCOL,
                old="            seen = read(self._stores, message, job, self._version, self._clock.now())\n",
                new="            seen = early\n",
            ),
        ),
        tests=(
            "tests/scenarios/test_worker_ordinary.py::test_whenever_another_worker_completes_the_unit_it_is_run_once",
        ),
    ),
    Mutation(
        name="keep-alive-not-joined",
        breaks="the keep-alive is joined before anything is written",
        edits=(
            Edit(
                file="functions/worker/keepalive.py",
                old="        self._stop.set()\n        self._thread.join()\n",
                new="        self._stop.set()\n",
            ),
        ),
        tests=("tests/unit/worker/test_keepalive.py::test_the_ticker_is_joined_however_the_job_ends",),
    ),
    Mutation(
        name="expiry-without-skew",
        breaks="a lease has run out only where every clock within the skew says so",
        edits=(
            Edit(file=_LEASES, old="return self.expires_at < now - skew", new="return self.expires_at < now"),
            Edit(file=_LEASES, old='Below("expires_at", to_ms(now - skew))', new='Below("expires_at", to_ms(now))'),
        ),
        tests=(
            "tests/records/test_leases.py::test_an_expired_lease_is_taken_over_only_beyond_the_skew[memory-65-False]",
        ),
    ),
    Mutation(
        name="duplicate-without-entry",
        breaks="a duplicate is acknowledged with an entry of its own",
        edits=(
            Edit(
                file=_ENDINGS,
                old="owner=unit.lease.owner, at=self._clock.now())\n        self._write(unit, entry)\n",
                new=(
                    "owner=unit.lease.owner, at=self._clock.now())\n"
                    "        del entry\n        self._stores.leases.free(unit.lease, now=self._clock.now())\n"
                ),
            ),
        ),
        tests=(
            "tests/scenarios/test_worker_ordinary.py::test_b11_a_message_after_the_end_is_acknowledged_and_noted_and_nothing_runs",
        ),
    ),
    Mutation(
        name="attempts-from-sqs",
        breaks="attempts are counted from the journal, never from deliveries",
        edits=(
            Edit(
                file=_PROTOCOL,
                old="return self._run(unit, unit.job, attempt, context, extend_messages)",
                new="return self._run(unit, unit.job, unit.message.receives, context, extend_messages)",
            ),
        ),
        tests=(
            "tests/scenarios/test_worker_retries.py::test_a_hundred_deliveries_that_found_the_lock_held_are_no_attempts",
        ),
    ),
    Mutation(
        name="cursor-before-rows",
        breaks="the cursor moves after the rows are written",
        edits=(
            Edit(
                file="functions/scheduler/tick.py",
                old="        self._write(known, window, tally, stop_at)\n        return self._settle",
                new=(
                    "        self._stores.heartbeats.move_cursor(\n"
                    "            state, until, now=clock, every_s=self._settings.every_s, joining={}, former=()\n"
                    "        )\n"
                    "        self._write(known, window, tally, stop_at)\n        return self._settle"
                ),
            ),
        ),
        tests=(
            "tests/scenarios/test_scheduler_ticks.py::test_invariant_9_a_scheduler_killed_at_any_write_is_replaced_without_a_trace",
        ),
    ),
    Mutation(
        name="relay-ignores-failed",
        breaks="what an answer of 200 does not call sent was not sent",
        edits=(
            Edit(
                file="functions/relay/queues.py",
                old='return set(messages) - {int(entry["Id"]) for entry in answer.get("Successful", [])}',
                new="return set()",
            ),
        ),
        tests=(
            "tests/scenarios/test_relay_stream.py::test_e08_eleven_units_go_out_in_two_batches_and_only_what_failed_comes_again",
        ),
    ),
    Mutation(
        name="sent-before-published",
        breaks="an incident is marked as sent after it was published",
        edits=(
            Edit(
                file="functions/monitor/outbox.py",
                old="            message_id = self._publisher.publish(",
                new=(
                    '            self._incidents.mark_sent(incident, "before", now=self._now)\n'
                    "            message_id = self._publisher.publish("
                ),
            ),
        ),
        tests=(
            "tests/scenarios/test_monitor_outbox.py::test_f06_i09_an_incident_is_told_once_or_twice_wherever_the_monitor_dies_in_telling_it",
            "tests/scenarios/test_monitor_outbox.py::test_a_topic_out_of_reach_loses_nothing_and_is_reported",
        ),
    ),
    Mutation(
        name="no-waiter-is-noted",
        breaks="a free lock is left to the unit that has waited longest",
        edits=(
            Edit(
                file=_WAITING,
                old="        if stop is not None or waiter is not lease.next:\n",
                new="        if stop is not None:\n",
            ),
        ),
        tests=(
            "tests/scenarios/test_worker_queue.py::test_a_free_lock_goes_to_the_unit_that_waits_and_not_to_the_one_that_comes_by",
        ),
    ),
    Mutation(
        name="kept-for-who-cannot-start",
        breaks="no lock is kept, and no run ended, for a unit that could not start",
        edits=(
            Edit(
                file=_WAITING,
                old="        if isinstance(decision, Start | Conclude):\n",
                new="        if decision is not None:\n",
            ),
        ),
        tests=(
            "tests/scenarios/test_worker_queue.py::test_no_lock_is_kept_for_a_unit_that_could_not_start_and_no_run_ended_for_it[paused-queue]",
        ),
    ),
    Mutation(
        name="earlier-ends-later",
        breaks="a unit is ended for a later one of its job only",
        edits=(Edit(file=_WAITING, old="    return holder.slot < unit.slot\n", new="    return True\n"),),
        tests=("tests/scenarios/test_worker_overlap.py::test_a_later_unit_is_never_ended_for_an_earlier_one",),
    ),
)
