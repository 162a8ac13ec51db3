/** `nereid serve` over a model repository as a server with a page, for tests in a browser. */
import { Effect, Exit, Scope } from "effect"
import { nereid } from "../Program.ts"
import { repository, type RepositoryFixture } from "../fixtures/repository.ts"
import type { PageServer } from "./Page.fixture.ts"

/** Writes a repository and serves it. `stop` also removes it. */
export const serve = async (
  write: (repository: RepositoryFixture) => void,
  ...flags: ReadonlyArray<string>
): Promise<PageServer & { readonly repository: RepositoryFixture }> => {
  const scope = Scope.makeUnsafe()
  const fixture = await Effect.runPromise(Scope.provide(repository, scope))
  write(fixture)
  const ports = ["--http-address=127.0.0.1", "--http-port=0", "--allow-grpc=false", "--allow-metrics=false"]
  const program = nereid("serve", `--model-repository=${fixture.path}`, "--exit-on-error=false", ...ports, ...flags)
  const [, port = ""] = await program.match(/HTTPService at [^:]+:(\d+)/)
  const stop = async () => {
    await program[Symbol.asyncDispose]()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
  return { http: { port: Number(port) }, stop, repository: fixture }
}
