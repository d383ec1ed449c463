import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { SettingsPlace } from '../../src/settings/settings-request.ts';
import type { SettingsCase } from './settings-case.ts';

/** A temporary directory with a working directory, a home and a site directory in it. */
export interface SettingsTree {
  readonly root: string;
  readonly place: SettingsPlace;
  /** What `place.warn` was told. */
  readonly warnings: readonly string[];
}

/**
 * Lays out the files of a case.
 *
 * @param owner when it ends, the tree goes away
 */
export async function settingsTree(
  owner: { after(remove: () => Promise<void>): void },
  one: Pick<SettingsCase, 'files' | 'env'>,
): Promise<SettingsTree> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'cloud-settings-')));
  owner.after(() => rm(root, { recursive: true }));
  for (const directory of ['cwd', 'home', 'site']) await mkdir(join(root, directory));
  for (const [path, text] of Object.entries(one.files ?? {})) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  const warnings: string[] = [];
  const env = { XDG_CONFIG_DIRS: join(root, 'site'), ...one.env };
  return {
    root,
    warnings,
    place: {
      env: Object.fromEntries(
        Object.entries(env).map(([name, value]) => [name, value.replace('$TREE', root)]),
      ),
      cwd: join(root, 'cwd'),
      home: join(root, 'home'),
      warn: (message) => warnings.push(message),
    },
  };
}
