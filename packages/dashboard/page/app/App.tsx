/** The page: navigation, what concerns all views, and the view of the route. */
import { useLayoutEffect, useRef } from "preact/hooks"
import { Connection } from "./Connection.tsx"
import { link, route } from "./route.ts"
import { SecretQuestion } from "./SecretQuestion.tsx"
import { views, viewOf } from "./views.ts"

export const App = () => {
  const { parts } = route.value
  const view = viewOf(parts)
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  useLayoutEffect(() => {
    document.title = `${view.title} – Nereid`
    // Screen readers and keyboards go on at the new view, but for the one that the page opens with.
    if (!isFirst.current) main.current?.focus({ preventScroll: true })
    isFirst.current = false
  }, [view.title])
  const { component: Content } = view
  return (
    <>
      <a
        class="skip"
        href={`#${main.current?.id ?? "main"}`}
        onClick={(event) => {
          event.preventDefault()
          main.current?.focus()
        }}
      >
        Skip to the content
      </a>
      <header class="page-header">
        <a class="brand" href={link([])}>
          Nereid
        </a>
        <nav aria-label="Views">
          {views.map(({ path, title }) => (
            <a key={path} href={link([path])} aria-current={path === view.path ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <Connection />
      </header>
      <main ref={main} id="main" tabIndex={-1}>
        <Content key={parts.join("/")} />
      </main>
      <SecretQuestion />
    </>
  )
}
