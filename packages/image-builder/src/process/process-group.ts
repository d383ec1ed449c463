import { errnoOf } from '../system-error.ts';

/** Whether the group has a process, including zombies. */
export function groupExists(leader: number): boolean {
  try {
    process.kill(-leader, 0);
    return true;
  } catch (error) {
    return errnoOf(error) === 'EPERM';
  }
}

/** Sends a signal to every process of the group that this user may signal. An empty group is not an error. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch (error) {
    // EPERM: all remaining processes run as root under sudo, which forwards signals.
    if (!['ESRCH', 'EPERM'].includes(errnoOf(error) ?? '')) throw error;
  }
}
