import type { NodepoolCredentials } from '../../src/settings/cloud-auth.ts';

/** Files, environment and request of one case. */
export interface SettingsCase {
  readonly title: string;
  /** Contents of files by path: `cwd/clouds.yaml`, `home/.config/openstack/secure.yaml`, `site/openstack/…`. */
  readonly files?: Readonly<Record<string, string>>;
  /** `$TREE` in a value is the directory of the files. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cloud?: string;
  readonly regionName?: string;
  readonly provider?: Omit<NodepoolCredentials, 'name'>;
  /** Deliberate differences from openstacksdk. */
  readonly differs?: {
    readonly why: string;
    /** First release of openstacksdk with the difference; earlier ones have our values. Default: all releases. */
    readonly since?: string;
    /** Different values; undefined for an absent one. */
    readonly ours: Readonly<Record<string, unknown>>;
  };
}

/** The difference for a provider with its own project. */
export const PROJECT_OF_PROVIDER: NonNullable<SettingsCase['differs']> = {
  why: 'openstacksdk prefers the project of the cloud',
  since: '2.0',
  ours: { 'auth.project_name': 'of-provider' },
};

/** Returns a `clouds.yaml` with one valid cloud, `cloud`, and additional lines for it. */
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
