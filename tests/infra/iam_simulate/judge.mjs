// Reads {principals, resourcePolicies, requests} from stdin, writes one verdict per request to stdout.
// What the engine cannot judge, or judges without a context key that it was given, is an error and no verdict.

import { readFileSync } from 'node:fs'
import { createValidatedPolicy, validateIdentityPolicy, validateResourcePolicy } from '@cloud-copilot/iam-policy'
import { runSimulation } from '@cloud-copilot/iam-simulate'

const given = JSON.parse(readFileSync(0, 'utf8'))

// Once, and not for each request: that is most of the time.  The engine reports what is wrong with one it is given.
const identityPolicies = mapValues(given.principals, (policies) =>
  policies.map((policy, index) => ({ name: `${index}`, policy: createValidatedPolicy(policy, validateIdentityPolicy) })),
)
const resourcePolicies = mapValues(given.resourcePolicies, (policy) =>
  createValidatedPolicy(policy, validateResourcePolicy),
)

function mapValues(object, change) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]))
}

async function judge({ principal, account, action, resource, context }) {
  const answer = await runSimulation(
    {
      request: { principal, action, resource: { resource, accountId: account }, contextVariables: context },
      identityPolicies: identityPolicies[principal],
      resourcePolicy: resourcePolicies[resource],
      serviceControlPolicies: [],
      resourceControlPolicies: [],
    },
    { simulationMode: 'Strict' },
  )
  const asked = `${principal} ${action} ${resource} ${JSON.stringify(context)}`
  if (answer.resultType !== 'single') {
    throw new Error(`${asked} cannot be judged: ${JSON.stringify(answer.errors ?? answer.resultType)}`)
  }
  if (answer.result.ignoredContextKeys.length > 0) {
    throw new Error(`${asked} was judged without ${answer.result.ignoredContextKeys}`)
  }
  return answer.overallResult
}

const verdicts = []
for (const request of given.requests) {
  verdicts.push(await judge(request))
}
process.stdout.write(JSON.stringify(verdicts))
