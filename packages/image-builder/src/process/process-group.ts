import { errnoOf } from '../system-error.ts';

/** Whether any process of the group is left, one that its parent has not reaped yet included. */
export function groupExists(leader: number): boolean {
  try {
    process.kill(-leader, 0);
    return true;
  } catch (error) {
    return errnoOf(error) === 'EPERM';
  }
}

/** Sends a signal to every process of the group that may be signalled; nothing happens if there is none. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch (error) {
    // EPERM: all that is left runs as root under sudo, which passes signals on.
    if (!['ESRCH', 'EPERM'].includes(errnoOf(error) ?? '')) throw error;
  }
}
