import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { ManagerState, Request, StateStore } from '@nodepool-builder/image-manager';
import { CommandError, warn } from '../terms/command-error.ts';

/** Timeout for the manager to serve a request, and the pause between two checks, in milliseconds. */
const TIMEOUT = 30_000;
const PAUSE = 250;

/** @throws CommandError `unreachable` if no manager would serve a request */
export async function requireManager(store: StateStore): Promise<void> {
  if ((await store.describeLeader()) !== undefined) return;
  throw new CommandError(`${NO_MANAGER}; nothing was requested`, 'unreachable');
}

/** Warns if no manager runs, after a list of current or next steps. */
export async function warnWithoutManager(store: Pick<StateStore, 'describeLeader'>): Promise<void> {
  if ((await store.describeLeader()) === undefined) warn(NO_MANAGER);
}

/** Returns whether a build or an upload has not ended. */
export function isUnfinished({ state }: { readonly state?: unknown }): boolean {
  return typeof state === 'string' && /^(?:queued|building|uploading|deleting)$/.test(state);
}

/** Message without a running manager. */
export const NO_MANAGER = 'no manager runs; start "nodepool-builder manage", or the daemon with --all-in-one';

/**
 * Stores a request for the manager, and waits until the manager has served it.
 *
 * @param outcomeOf describes the outcome; undefined to wait longer
 * @throws CommandError `unreachable`; `refused` if the same rollback is pending
 */
export async function serveRequest(
  store: StateStore,
  request: Request,
  outcomeOf: (state: ManagerState, isPending: boolean) => string | undefined,
): Promise<string> {
  const number = await store.ask(request);
  if (request.kind === 'rollback') await refuseRepeated(store, request, number);
  const end = performance.now() + TIMEOUT;
  for (;;) {
    const isPending = (await store.requests()).some((pending) => pending.number === number);
    const outcome = outcomeOf(await store.read(), isPending);
    if (outcome !== undefined) return outcome;
    if (performance.now() > end) {
      const reason = `the manager has not served request ${number} within ${TIMEOUT / 1000} s`;
      throw new CommandError(
        `${reason}; the manager serves it once it can; see "plan" and its log`,
        'unreachable',
      );
    }
    await delay(PAUSE);
  }
}

/**
 * Rejects a rollback while the same one is pending. The manager rejects it as well, because its build is then no longer
 * the newest.
 */
async function refuseRepeated(
  store: StateStore,
  request: Extract<Request, { kind: 'rollback' }>,
  number: number,
): Promise<void> {
  const first = (await store.requests()).find((pending) => isDeepStrictEqual(pending.request, request));
  if (first === undefined || first.number === number) return;
  const reason = `request ${first.number} to roll back disk image "${request.diskimage}" is still pending`;
  throw new CommandError(`${reason}; wait until the manager has served it`, 'refused');
}
