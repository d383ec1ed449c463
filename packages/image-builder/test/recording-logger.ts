import type { Logger } from '../src/index.ts';

/** A logger whose lines, each beginning with its level, are there to be looked at. */
export class RecordingLogger implements Logger {
  readonly lines: string[] = [];

  debug(message: string): void {
    this.lines.push(`debug ${message}`);
  }

  info(message: string): void {
    this.lines.push(`info ${message}`);
  }

  warn(message: string): void {
    this.lines.push(`warn ${message}`);
  }

  error(message: string): void {
    this.lines.push(`error ${message}`);
  }
}
