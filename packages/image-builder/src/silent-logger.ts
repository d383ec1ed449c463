import type { Logger } from './types.ts';

/** Discards messages, for parts whose errors are shown in another way. */
export const SILENT_LOGGER: Logger = { debug() {}, info() {}, warn() {}, error() {} };
