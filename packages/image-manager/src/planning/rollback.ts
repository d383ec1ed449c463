import type { Build, ManagerState } from '../records.ts';
import { newestFirst } from './age.ts';

/** What a rollback withdraws, or why it would leave nothing good behind. */
export type Rollback = { readonly withdrawn: Build } | { readonly refused: string };

/**
 * Goes back to the build before the newest of those in use: on disk, or in a provider. Refused if there is none. The
 * build that is returned is marked as withdrawn; it is for the caller to store it.
 */
export function rollback(state: ManagerState, diskimage: string): Rollback {
  const uploaded = new Set<string>();
  for (const upload of state.uploads.values()) if (upload.state === 'ready') uploaded.add(upload.imageId);
  const good = [...state.builds.values()]
    .filter((build) => build.diskimage === diskimage && !build.withdrawn)
    .filter((build) => build.state === 'ready' || uploaded.has(build.id));
  const [newest, before] = good.toSorted(newestFirst(good, (build) => build));
  if (newest === undefined) {
    return { refused: `Diskimage ${diskimage} has no ready build that could be withdrawn. Have one built.` };
  }
  if (before === undefined) {
    return {
      refused: `${newest.id} is the only good build of diskimage ${diskimage}: there is none to go back to. Have a new one built.`,
    };
  }
  return { withdrawn: { ...newest, withdrawn: true } };
}
