import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { CloudAuth, CloudSettings, NamedInDomain, ServiceSettings } from '../../src/cloud-settings.ts';
import type { SettingsCase } from './settings-case.ts';
import type { SettingsTree } from './settings-tree.ts';

/** Settings in openstacksdk's names, without empty values. */
export type SdkView = Readonly<Record<string, unknown>>;

/** Results of Debian's openstacksdk. */
export interface SdkResults {
  /** Release, such as `4.4.0`. */
  readonly release: string;
  /** Settings for each case; undefined for an error. */
  readonly views: readonly (SdkView | undefined)[];
}

/** Runs Debian's openstacksdk for the cases, each in its own tree. */
export function askOpenStackSdk(cases: readonly SettingsCase[], trees: readonly SettingsTree[]): SdkResults {
  const input = cases.map((one, index) => question(one, trees[index] as SettingsTree));
  const output = execFileSync('/usr/bin/python3', [join(import.meta.dirname, 'openstacksdk.py')], {
    input: JSON.stringify(input),
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', XDG_CACHE_HOME: process.env.XDG_CACHE_HOME },
  });
  const { release, results } = JSON.parse(output) as { release: string; results: SdkResult[] };
  const views = results.map((result) =>
    'error' in result ? undefined : flat({ ...result, auth: todaysNames(result.auth) }),
  );
  return { release, views };
}

interface SdkResult {
  readonly auth: Readonly<Record<string, unknown>>;
}

/** The provider's keys as arguments, like nodepool's `_cloudKwargsFromProvider`. */
function question(one: SettingsCase, tree: SettingsTree): unknown {
  const { cloud, regionName, provider } = one;
  const auth = {
    username: provider?.username,
    password: provider?.password,
    'auth-url': provider?.authUrl,
    'project-id': provider?.projectId,
    'project-name': provider?.projectName,
  };
  return {
    env: { ...tree.place.env, HOME: tree.place.home },
    cwd: tree.place.cwd,
    cloud: cloud ?? null,
    arguments: { 'region-name': regionName, 'api-timeout': provider?.apiTimeout, auth },
  };
}

function todaysNames(auth: Readonly<Record<string, unknown>>): unknown {
  return Object.fromEntries(
    Object.entries(auth).map(([key, value]) => [key.replace(/^tenant_/, 'project_'), value]),
  );
}

/** Converts our settings to openstacksdk's names. */
export function sdkView(settings: CloudSettings): SdkView {
  const { tls } = settings;
  return flat({
    name: settings.name,
    auth_type: authType(settings.auth),
    auth: authValues(settings.auth),
    image: serviceView(settings.image, settings.auth),
    object_store: serviceView(settings.objectStore, settings.auth),
    verify: tls.verify ? (tls.caFile ?? true) : false,
    cert: tls.keyFile === undefined ? tls.certFile : [tls.certFile, tls.keyFile],
    // openstacksdk has no default, so that requests waits forever.
    api_timeout: settings.apiTimeout === 60 ? undefined : settings.apiTimeout,
    image_format: settings.imageFormat,
    image_api_use_tasks: settings.imageApiUseTasks,
    disable_vendor_agent: settings.disableVendorAgent,
  });
}

function serviceView(service: ServiceSettings, auth: CloudAuth): unknown {
  const { type, name, regionName } = service;
  const endpoint = service.endpointOverride ?? (auth.type === 'none' ? auth.endpoint : undefined);
  return { type, name, interface: service.interface, region: regionName, endpoint };
}

function authType(auth: CloudAuth): string {
  if (auth.type === 'application-credential') return 'v3applicationcredential';
  if (auth.type === 'none' || auth.version === undefined) return auth.type;
  return `v${auth.version}${auth.type}`;
}

function authValues(auth: CloudAuth): unknown {
  if (auth.type === 'none') return { endpoint: auth.endpoint };
  const auth_url = auth.url;
  if (auth.type === 'application-credential') {
    return {
      auth_url,
      application_credential_id: auth.id,
      application_credential_name: auth.name,
      application_credential_secret: auth.secret,
      ...named('user', 'username', auth.user),
    };
  }
  const { project, domain, system } = auth.scope;
  const secret =
    auth.type === 'token'
      ? { token: auth.token }
      : { password: auth.password, ...named('user', 'username', auth.user) };
  return {
    auth_url,
    ...secret,
    ...named('project', 'project_name', project),
    domain_id: domain?.id,
    domain_name: domain?.name,
    system_scope: system,
  };
}

function named(kind: string, nameKey: string, who: NamedInDomain | undefined): Record<string, unknown> {
  return {
    [`${kind}_id`]: who?.id,
    [nameKey]: who?.name,
    [`${kind}_domain_id`]: who?.domainId,
    [`${kind}_domain_name`]: who?.domainName,
  };
}

/** Flattens to keys with dots, without null, undefined and empty texts: `auth.username`. */
function flat(value: Readonly<Record<string, unknown>>, prefix = ''): SdkView {
  const entries = Object.entries(value).flatMap(([key, entry]): [string, unknown][] => {
    if (entry === null || entry === undefined || entry === '') return [];
    if (typeof entry !== 'object' || Array.isArray(entry)) return [[prefix + key, entry]];
    return Object.entries(flat(entry as Record<string, unknown>, `${prefix}${key}.`));
  });
  return Object.fromEntries(entries);
}
