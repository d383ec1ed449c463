import type { AuthScope, CloudAuth, NamedInDomain } from '../cloud-settings.ts';
import { type Mapping, type MergedCloud, mappingAt } from './merged-cloud.ts';

/** Credentials and settings of a provider in `nodepool.yaml`, which take precedence over `clouds.yaml`. */
export interface NodepoolCredentials {
  /** Name of the provider, for messages. */
  readonly name: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly authUrl?: string | undefined;
  readonly projectId?: string | undefined;
  readonly projectName?: string | undefined;
  /** `api-timeout`, in seconds. */
  readonly apiTimeout?: number | undefined;
}

/** Credentials whose older name in `auth` takes precedence over the newer one beside `auth`. */
const INSIDE_FIRST = [
  'auth_url',
  'endpoint',
  'user_id',
  'username',
  'password',
  'default_domain_id',
  'default_domain_name',
  'system_scope',
  'trust_id',
  'application_credential_id',
  'application_credential_name',
  'application_credential_secret',
] as const;

/** Credentials whose newer name beside `auth` takes precedence over the older one in `auth`. */
const NEWER_NAME_FIRST = [
  'token',
  'project_id',
  'project_name',
  'domain_id',
  'domain_name',
  'user_domain_id',
  'user_domain_name',
  'project_domain_id',
  'project_domain_name',
] as const;

type CredentialName = (typeof INSIDE_FIRST)[number] | (typeof NEWER_NAME_FIRST)[number];

type Credentials = Readonly<Partial<Record<CredentialName, unknown>>>;

const OLDER_NAMES: Readonly<Partial<Record<CredentialName, string>>> = {
  endpoint: 'url',
  username: 'user_name',
  token: 'auth_token',
  project_id: 'tenant_id',
  project_name: 'tenant_name',
};

/**
 * Collects the credentials from the provider, the `auth` of the cloud and the keys beside it, in the order of
 * os-client-config 1.22. In openstacksdk 2.0, projects and domains beside `auth` take precedence over those in it.
 */
function credentialsOf(cloud: Mapping, provider: NodepoolCredentials): Credentials {
  const inside = mappingAt(cloud, 'auth');
  const found: Partial<Record<CredentialName, unknown>> = {};
  for (const name of INSIDE_FIRST) {
    const older = OLDER_NAMES[name] ?? name;
    found[name] = firstSet(inside[name], inside[older], cloud[name], cloud[older]);
  }
  for (const name of NEWER_NAME_FIRST) {
    const older = OLDER_NAMES[name] ?? name;
    found[name] = firstSet(inside[name], cloud[name], inside[older], cloud[older]);
  }
  found.auth_url = firstSet(provider.authUrl, found.auth_url);
  found.username = firstSet(provider.username, found.username);
  found.password = firstSet(provider.password, found.password);
  found.project_id = firstSet(provider.projectId, found.project_id);
  found.project_name = firstSet(provider.projectName, found.project_name);
  const { domain_id, domain_name, ...others } = found;
  // `domain_*` is the domain of the user and the project; without a project it is the scope.
  if (found.project_id === undefined && found.project_name === undefined) return found;
  return {
    ...others,
    user_domain_id: found.user_domain_id ?? domain_id,
    project_domain_id: found.project_domain_id ?? domain_id,
    user_domain_name: found.user_domain_name ?? domain_name,
    project_domain_name: found.project_domain_name ?? domain_name,
  };
}

function firstSet(...values: readonly unknown[]): unknown {
  return values.find((value) => value !== undefined && value !== null && value !== '');
}

/** Supported values of `auth_type`. */
const AUTH_TYPES: Readonly<Record<string, { type: CloudAuth['type']; version?: 2 | 3 }>> = {
  password: { type: 'password' },
  v2password: { type: 'password', version: 2 },
  v3password: { type: 'password', version: 3 },
  token: { type: 'token' },
  v2token: { type: 'token', version: 2 },
  v3token: { type: 'token', version: 3 },
  v3applicationcredential: { type: 'application-credential' },
  none: { type: 'none' },
  None: { type: 'none' },
};

const ADD_TO_AUTH = 'add it to "auth" of the cloud, or to the provider';

/**
 * Reads the authentication of a cloud from its `auth_type` and credentials.
 *
 * @param imageEndpoint fixed URL of the image service, if any
 * @throws OpenStackError `invalid-settings` for an unsupported `auth_type`, a missing value, or two scopes
 */
export function cloudAuth(
  cloud: MergedCloud,
  provider: NodepoolCredentials,
  imageEndpoint: string | undefined,
): CloudAuth {
  const named = cloud.text('auth_type') ?? cloud.text('auth_plugin') ?? 'password';
  const row = Object.hasOwn(AUTH_TYPES, named) ? AUTH_TYPES[named] : undefined;
  if (row === undefined) {
    const supported = Object.keys(AUTH_TYPES).filter((name) => name !== 'None');
    throw cloud.invalid('its auth_type is not supported', `use one of ${supported.join(', ')}`);
  }
  const credentials = credentialsOf(cloud.values, provider);
  const optional: Reader = (name) => cloud.rawText(name, credentials);
  const required = (name: CredentialName): string => {
    const value = optional(name);
    if (value === undefined) throw cloud.invalid(`${name} is missing`, ADD_TO_AUTH);
    return value;
  };
  const user = (): NamedInDomain => {
    const found = namedInDomain('user', optional);
    if (found === undefined) throw cloud.invalid('username is missing', ADD_TO_AUTH);
    return found;
  };
  if (row.type === 'none') {
    const endpoint = optional('endpoint') ?? imageEndpoint;
    if (endpoint !== undefined) return { type: 'none', endpoint };
    throw cloud.invalid('auth_type none needs the URL of the image service', 'add image_endpoint_override');
  }
  const url = cloud.filledIn('auth_url', required('auth_url'));
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    throw cloud.invalid('auth_url is not a URL', 'write one that begins with https:// or http://');
  }
  if (row.type === 'application-credential') {
    const secret = required('application_credential_secret');
    const id = optional('application_credential_id');
    if (id !== undefined) return { type: row.type, url, id, secret };
    const name = optional('application_credential_name');
    if (name !== undefined) return { type: row.type, url, name, user: user(), secret };
    throw cloud.invalid('application_credential_id is missing', 'add it to "auth" of the cloud');
  }
  const version = row.version === undefined ? {} : { version: row.version };
  const common = { url, scope: scopeOf(cloud, optional), ...version };
  return row.type === 'token'
    ? { type: row.type, token: required('token'), ...common }
    : { type: row.type, user: user(), password: required('password'), ...common };
}

type Reader = (name: CredentialName) => string | undefined;

function scopeOf(cloud: MergedCloud, optional: Reader): AuthScope {
  const project = namedInDomain('project', optional);
  const [id, name] = [optional('domain_id'), optional('domain_name')];
  const domain = id === undefined ? name && { name } : { id };
  const system = optional('system_scope');
  if (optional('trust_id') !== undefined) {
    throw cloud.invalid('trust_id is not supported', 'name a project');
  }
  if (system !== undefined && system !== 'all') {
    throw cloud.invalid('system_scope is unknown', 'write "all", or name a project');
  }
  if ([project, domain, system].filter((scope) => scope !== undefined).length > 1) {
    throw cloud.invalid('a token is for a project, a domain or the system', 'keep only one of them');
  }
  if (project !== undefined) return { project };
  if (domain) return { domain };
  return system === undefined ? {} : { system };
}

/** By the id, else by the name and the domain, whose id takes precedence, too. */
function namedInDomain(kind: 'user' | 'project', optional: Reader): NamedInDomain | undefined {
  const id = optional(`${kind}_id`);
  if (id !== undefined) return { id };
  const name = optional(kind === 'user' ? 'username' : 'project_name');
  if (name === undefined) return undefined;
  for (const owner of [kind, 'default'] as const) {
    const domainId = optional(`${owner}_domain_id`);
    if (domainId !== undefined) return { name, domainId };
    const domainName = optional(`${owner}_domain_name`);
    if (domainName !== undefined) return { name, domainName };
  }
  return { name };
}
