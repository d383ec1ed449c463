/** Ends a command with a message for the person at the terminal, and exit code 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}
