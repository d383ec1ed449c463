import { type Mapping, mappingAt } from './mapping.ts';
import type { NodepoolCredentials } from './settings-request.ts';

/** The older name in `auth` counts above the newer one beside `auth`. */
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

/** The newer name beside `auth` counts above the older one in `auth`. */
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

/** What authentication may need, by the names of today. */
export type CredentialName = (typeof INSIDE_FIRST)[number] | (typeof NEWER_NAME_FIRST)[number];

/** Values for authentication as the settings have them; nothing in it is null or empty. */
export type Credentials = Readonly<Partial<Record<CredentialName, unknown>>>;

const OLDER_NAMES: Readonly<Partial<Record<CredentialName, string>>> = {
  endpoint: 'url',
  username: 'user_name',
  token: 'auth_token',
  project_id: 'tenant_id',
  project_name: 'tenant_name',
};

/**
 * Gathers what authentication may need from the `auth` of a cloud, from the keys beside it, and from the provider, each
 * of them over those after it, but for the provider, which is over all. That is the order of os-client-config 1.22; in
 * openstacksdk 2.0 projects and domains beside `auth` count above those in it.
 */
export function credentialsOf(cloud: Mapping, provider: NodepoolCredentials): Credentials {
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
  return withDomainsSpread({
    ...found,
    auth_url: firstSet(provider.authUrl, found.auth_url),
    username: firstSet(provider.username, found.username),
    password: firstSet(provider.password, found.password),
    project_id: firstSet(provider.projectId, found.project_id),
    project_name: firstSet(provider.projectName, found.project_name),
  });
}

function firstSet(...values: readonly unknown[]): unknown {
  return values.find((value) => value !== undefined && value !== null && value !== '');
}

/** `domain_*` beside a project means the user's and the project's domain; without a project it is the scope. */
function withDomainsSpread({ domain_id, domain_name, ...found }: Credentials): Credentials {
  if (found.project_id === undefined && found.project_name === undefined) {
    return { ...found, domain_id, domain_name };
  }
  return {
    ...found,
    user_domain_id: found.user_domain_id ?? domain_id,
    project_domain_id: found.project_domain_id ?? domain_id,
    user_domain_name: found.user_domain_name ?? domain_name,
    project_domain_name: found.project_domain_name ?? domain_name,
  };
}
