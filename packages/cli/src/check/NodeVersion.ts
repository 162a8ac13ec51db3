/** The message for a Node that is too old. The module must load in every version of Node that has ES modules. */
import { isSupported } from "create-nereid/internal/NodeVersion"

/** Returns the message for a Node that is too old, which ran from `path`; otherwise undefined. */
export const problem = (version: string, needed: string, path: string): string | undefined => {
  if (isSupported(version, needed)) return undefined
  const needs = `nereid needs Node ${minimumOf(needed)} or newer, but ${path} is Node ${version}.`
  return `${needs}\n${remedy}`
}

/** How to get a newer Node. */
export const remedy =
  'Install a newer Node from https://nodejs.org/en/download, or run "npm install --save-dev node" to install it in this project, where npx and npm scripts use it.'

const minimumOf = (needed: string): string => needed.replace(/^>=/, "")
