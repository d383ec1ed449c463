import type { NodepoolCredentials } from '../../src/settings/settings-request.ts';

/** What lies where, and what is asked for. */
export interface SettingsCase {
  readonly title: string;
  /** Texts of files by their paths: `cwd/clouds.yaml`, `home/.config/openstack/secure.yaml`, `site/openstack/…`. */
  readonly files?: Readonly<Record<string, string>>;
  /** `$TREE` in a value stands for the tree that the files lie in. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cloud?: string;
  readonly regionName?: string;
  readonly provider?: Omit<NodepoolCredentials, 'name'>;
  /** Where we differ from Debian's openstacksdk on purpose. */
  readonly differs?: {
    readonly why: string;
    /** What is different in our view; undefined for what is not there. */
    readonly ours: Readonly<Record<string, unknown>>;
  };
}

/** `clouds.yaml` with one cloud, `cloud`, that can be used as it is; further lines of it follow. */
export function oneCloud(...lines: readonly string[]): string {
  return [
    'clouds:',
    '  cloud:',
    '    auth:',
    '      auth_url: https://keystone.example:5000',
    '      username: user',
    '      password: cloud-password',
    ...lines.map((line) => `    ${line}`),
    '',
  ].join('\n');
}
