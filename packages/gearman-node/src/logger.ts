/** Receives log messages. A winston logger and `console` have this interface. */
export interface Logger {
  debug(message: string, meta?: object): unknown;
  info(message: string, meta?: object): unknown;
  warn(message: string, meta?: object): unknown;
  error(message: string, meta?: object): unknown;
}
