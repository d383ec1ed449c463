/** Where log lines go; a winston logger is one, and so is `console`. */
export interface Logger {
  debug(message: string, meta?: object): unknown;
  info(message: string, meta?: object): unknown;
  warn(message: string, meta?: object): unknown;
  error(message: string, meta?: object): unknown;
}
