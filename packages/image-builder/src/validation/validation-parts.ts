import type { BuildLog } from '../build/build-log.ts';
import type { LoggedCommand } from '../build/logged-command.ts';
import type { BuildContext } from '../context.ts';

/** Resources of a validation. */
export interface ValidationParts {
  readonly context: BuildContext;
  readonly run: LoggedCommand;
  readonly log: BuildLog;
}
