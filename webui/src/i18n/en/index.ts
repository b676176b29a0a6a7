import { chat } from "./chat"
import { datasets } from "./datasets"
import { form } from "./form"
import { frame } from "./frame"
import { models } from "./models"
import { parts } from "./parts"
import { queue } from "./queue"
import { settings } from "./settings"
import { training } from "./training"
import { workers } from "./workers"

export const catalogue = { ...frame, ...form, ...parts, ...datasets, ...models, ...training, ...queue, ...workers, ...chat, ...settings }
export const phrases = {}
