import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { SettingsPlace } from '../../src/settings/cloud-files.ts';
import type { SettingsCase } from './settings-case.ts';

/** A temporary directory with a working directory, a home and a site directory. */
export interface SettingsTree {
  readonly root: string;
  readonly place: SettingsPlace;
  /** Arguments of `place.warn`. */
  readonly warnings: readonly string[];
}

/**
 * Creates the files of a case.
 *
 * @param owner the files are removed after it
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
