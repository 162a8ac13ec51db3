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
      const wanted = new Set(choice.value.versions.map(Number))
      return versions.filter((version) => wanted.has(version))
    }
    default:
      return versions.slice(-(choice?.value?.numVersions || 1))
  }
}
