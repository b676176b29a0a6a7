import { createBrowserRouter, Navigate, type RouteObject } from "react-router"
import { Crash } from "~/frame/Crash"
import { Shell } from "~/frame/Shell"
import { NotFound } from "~/frame/NotFound"

/** Every page is a file of its own, loaded when it is first opened. */
function page(path: string, load: () => Promise<{ default: React.ComponentType }>): RouteObject {
  return { path, lazy: async () => ({ Component: (await load()).default }) }
}

const pages: RouteObject[] = [
  page("/", () => import("~/pages/overview/OverviewPage")),
  page("/datasets", () => import("~/pages/datasets/DatasetsPage")),
  page("/datasets/:id", () => import("~/pages/datasets/DatasetPage")),
  page("/models", () => import("~/pages/models/ModelsPage")),
  page("/models/:id", () => import("~/pages/models/ModelPage")),
  page("/training", () => import("~/pages/training/TrainingListPage")),
  page("/training/new", () => import("~/pages/training/NewTrainingPage")),
  page("/training/:id", () => import("~/pages/training/TrainingPage")),
  page("/evaluations/:id", () => import("~/pages/work/EvaluationPage")),
  page("/exports/:id", () => import("~/pages/work/ExportPage")),
  page("/imports/:id", () => import("~/pages/work/ImportPage")),
  page("/workers", () => import("~/pages/workers/WorkersPage")),
  page("/chat", () => import("~/pages/chat/ChatPage")),
  page("/chat/compare", () => import("~/pages/chat/ComparePage")),
  page("/chat/:id", () => import("~/pages/chat/ChatPage")),
  page("/settings/account", () => import("~/pages/settings/AccountPage")),
  page("/settings/api-keys", () => import("~/pages/settings/ApiKeysPage")),
  { path: "/settings", element: <Navigate to="/settings/account" replace /> },
  { path: "*", Component: NotFound },
]

export const router = createBrowserRouter([
  {
    ErrorBoundary: Crash,
    HydrateFallback: () => null,
    children: [
      page("/setup", () => import("~/pages/account/SetupPage")),
      page("/login", () => import("~/pages/account/LoginPage")),
      { Component: Shell, children: [{ ErrorBoundary: Crash, children: pages }] },
    ],
  },
])
