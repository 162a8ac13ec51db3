/** Cases of models in Python. Each runs over every transport, in one server for all cases of its group. */
import { Effect, Exit, Scope } from "effect"
import type { Repository } from "@nereid/repository"
import { afterAll, beforeAll, describe, it } from "vitest"
import { python } from "../fixtures/python.ts"
import { repository, type RepositoryFixture } from "../fixtures/repository.ts"
import { type PythonClient, type Transport, transports } from "./PythonClient.ts"
import { add, type JsonTensor, type Served, start, type TestModel, text } from "./PythonRepository.ts"

/** The server of a case, and its client. */
export interface CaseServer extends Served {
  readonly client: PythonClient
  /** Runs code in a model of texts: its result as text, or `failed: ` and the error. */
  readonly run: (code: string, model?: string) => Promise<string>
  /** The log since the case began. */
  readonly newLog: () => string
}

export interface PythonCase {
  readonly name: string
  /** Labels of lines/PythonLine.ts. */
  readonly proves?: ReadonlyArray<string>
  /** Default: both. */
  readonly over?: ReadonlyArray<Transport>
  /** Runs in a server that a case before it has used: its models may have executed requests. */
  readonly run: (server: CaseServer) => Promise<void>
}

export interface CaseGroup {
  readonly name: string
  /** Models by their names; their files are in test/python/models. */
  readonly models: Readonly<Record<string, TestModel>>
  /** Writes further files. */
  readonly files?: (fixture: RepositoryFixture) => void
  readonly options?: Partial<Repository.Options>
  readonly cases: ReadonlyArray<PythonCase>
}

export const transportsOf = ({ over = transports }: Pick<PythonCase, "over">): ReadonlyArray<Transport> => over

/** Declares the tests of a group. */
export const testGroup = ({ name, models, files, options, cases }: CaseGroup): void => {
  describe.skipIf(python === undefined)(name, () => {
    const scope = Scope.makeUnsafe()
    let server: Served | undefined
    beforeAll(async () => {
      const fixture = await Effect.runPromise(Scope.provide(repository, scope))
      for (const [model, given] of Object.entries(models)) add(fixture, model, given)
      files?.(fixture)
      server = await start(fixture, options)
    })
    afterAll(async () => {
      await server?.stop()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    })
    for (const one of cases) {
      for (const transport of transportsOf(one)) {
        it(`${one.name}, over ${transport}`, async () => {
          if (server === undefined) throw new Error("the server has not started")
          await one.run(caseServer(server, transport))
        })
      }
    }
  })
}

const caseServer = (server: Served, transport: Transport): CaseServer => {
  const client = server.clients[transport]
  const before = server.log().length
  return {
    ...server,
    client,
    run: async (code, model = "sync") => {
      const { outputs, error } = await client.infer(model, [text("IN", code)])
      return error === undefined ? String(outputs?.[0]?.data[0]) : `failed: ${error}`
    },
    newLog: () => server.log().slice(before),
  }
}

/** Data of the first output. */
export const dataOf = ({ outputs }: { readonly outputs?: ReadonlyArray<JsonTensor> }) => outputs?.[0]?.data
