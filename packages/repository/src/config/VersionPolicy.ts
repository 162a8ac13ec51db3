/** Which of the versions in a model's directory are loaded. Pure. */
import type { ModelVersionPolicy } from "@nereid/protocol/model_config"

/** Some of the available versions, the lowest first. Without a policy: the latest. */
export const chosen = (
  policy: ModelVersionPolicy | undefined,
  available: ReadonlyArray<number>,
): ReadonlyArray<number> => {
  const versions = available.toSorted((a, b) => a - b)
  const choice = policy?.policyChoice
  switch (choice?.case) {
    case "all":
      return versions
    case "specific": {
      const specific = new Set(named(policy))
      return versions.filter((version) => specific.has(version))
    }
    case "latest":
      return versions.slice(Math.max(0, versions.length - choice.value.numVersions))
    default:
      return versions.slice(-1)
  }
}

/** Returns the versions that a policy names, present or not. */
export const named = (policy: ModelVersionPolicy | undefined): ReadonlyArray<number> =>
  policy?.policyChoice.case === "specific" ? policy.policyChoice.value.versions.map(Number) : []
