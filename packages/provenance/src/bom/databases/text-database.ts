import type { InstalledPackage } from '../package-url.ts';

/** States in `Status` of packages of which no program is left. */
const NOT_INSTALLED: ReadonlySet<string> = new Set(['not-installed', 'config-files']);

/** Packages in `/var/lib/dpkg/status`. */
export function parseDpkgStatus(text: string): InstalledPackage[] {
  return paragraphs(text, ['Package', 'Version', 'Status', 'Architecture']).flatMap((fields) => {
    const { Package: name, Version: version, Status: status = '', Architecture: architecture } = fields;
    const isInstalled = !NOT_INSTALLED.has(status.split(' ').at(-1) ?? '');
    if (name === undefined || version === undefined || !isInstalled) return [];
    return [{ name, version, type: 'deb' as const, ...(architecture && { architecture }) }];
  });
}

/** Packages in `/lib/apk/db/installed`. */
export function parseApkDatabase(text: string): InstalledPackage[] {
  return paragraphs(text, ['P', 'V', 'A', 'L']).flatMap((fields) => {
    const { P: name, V: version, A: architecture, L: license } = fields;
    if (name === undefined || version === undefined) return [];
    const optional = { ...(architecture && { architecture }), ...(license && { license }) };
    return [{ name, version, type: 'apk' as const, ...optional }];
  });
}

/** The first value of each key in each paragraph. */
function paragraphs<const Key extends string>(
  text: string,
  keys: readonly Key[],
): Partial<Record<Key, string>>[] {
  const found: Partial<Record<Key, string>>[] = [];
  let fields: Partial<Record<Key, string>> = {};
  for (const line of text.split('\n')) {
    if (line === '') {
      found.push(fields);
      fields = {};
      continue;
    }
    const key = keys.find((candidate) => line.startsWith(`${candidate}:`));
    if (key !== undefined) fields[key] ??= line.slice(key.length + 1).trim();
  }
  return [...found, fields];
}
