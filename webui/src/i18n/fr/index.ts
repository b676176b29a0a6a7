import { chat } from "./chat"
import { datasets } from "./datasets"
import { frame } from "./frame"
import { models } from "./models"
import { parts } from "./parts"
import { queue } from "./queue"
import { settings } from "./settings"
import { training } from "./training"
import { workers } from "./workers"

export const catalogue = { ...frame, ...parts, ...datasets, ...models, ...training, ...queue, ...workers, ...chat, ...settings }
