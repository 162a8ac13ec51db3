/**
 * Modules of Node in a bundle, without import statements. Such a statement makes Node read all exports of the module,
 * some of which load further modules: zip archives, Web Crypto, the history of its prompt. The bundle gets a module by
 * `process.getBuiltinModule` instead. Where a name is a plain function, its first call does, so that a start loads no
 * module of which it only has functions.
 */
import { createRequire } from "node:module"

const require = createRequire(import.meta.url)

/**
 * Source of a module with the exports of a module of Node, such as `node:crypto`. A bundler keeps those that are used.
 * A name that the running Node lacks is undefined, and fails where it is used.
 */
export const source = (name: string): string => {
  const exported: Readonly<Record<string, unknown>> = require(name)
  return [
    `const load = () => process.getBuiltinModule("${name}")`,
    "export default /* @__PURE__ */ load()",
    ...Object.keys(exported).flatMap((key) =>
      isName(key) ? [`export const ${key} = ${isFunction(key, exported[key]) ? call(key) : read(key)}`] : [],
    ),
  ].join("\n")
}

const isName = (key: string) => /^[A-Za-z_$][\w$]*$/u.test(key) && key !== "default" && key !== "load"

const call = (key: string) => `(...args) => load().${key}(...args)`

const read = (key: string) => `/* @__PURE__ */ (() => load().${key})()`

const ownKeys: ReadonlySet<string | symbol> = new Set(["length", "name", "prototype", "arguments", "caller"])

/** Neither a class nor a function with properties, such as those that `promisify` reads. */
const isFunction = (key: string, value: unknown) =>
  typeof value === "function" && /^[a-z]/u.test(key) && Reflect.ownKeys(value).every((own) => ownKeys.has(own))
