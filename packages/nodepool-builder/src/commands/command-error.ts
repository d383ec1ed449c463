/** Ends a command with a message for the person at the terminal, and exit code 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** End of a message about a wrong name: the valid ones. */
export function choiceOf(names: readonly string[]): string {
  return names.length === 0 ? 'there are none' : `choose one of: ${names.join(', ')}`;
}
