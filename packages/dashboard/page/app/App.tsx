/** The page: navigation, and the view of the route. */
export const App = () => <h1>Nereid</h1>
