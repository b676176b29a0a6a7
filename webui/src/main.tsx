import { QueryClientProvider } from "@tanstack/react-query"
import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { RouterProvider } from "react-router/dom"
import { client } from "~/api/queries"
import { WordsProvider } from "~/i18n"
import { showTheme, storedTheme } from "~/state/theme"
import { router } from "./routes"
import "./styles.css"

showTheme(storedTheme())

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <WordsProvider>
        <RouterProvider router={router} />
      </WordsProvider>
    </QueryClientProvider>
  </StrictMode>,
)
