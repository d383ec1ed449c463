import { oneCloud, PROJECT_OF_PROVIDER, type SettingsCase } from '../settings-case.ts';

function auth(type: string, values: string): Pick<SettingsCase, 'files'> {
  return { files: { 'cwd/clouds.yaml': `clouds: {cloud: {auth_type: ${type}, auth: {${values}}}}` } };
}

const URL = "auth_url: 'https://k.example'";
const USER = `${URL}, username: user, password: word`;

const TOKEN_LOST: SettingsCase['differs'] = {
  why: 'openstacksdk replaces the token by the text "None"',
  since: '2.0',
  ours: { 'auth.token': 'secret' },
};

/** Each `auth_type` with its credentials. */
export const CREDENTIALS: readonly SettingsCase[] = [
  {
    title: 'password with a project by name',
    ...auth('password', `${USER}, project_name: p, project_domain_name: d, user_domain_id: u`),
  },
  { title: 'password with ids', ...auth('password', `${URL}, user_id: u, password: word, project_id: p`) },
  { title: 'password without a scope', ...auth('password', `${USER}, user_domain_name: d`) },
  {
    title: 'the name of a domain next to a project applies to user and project',
    ...auth('password', `${USER}, project_name: p, domain_name: d`),
  },
  {
    title: 'a domain next to a project applies to user and project',
    ...auth('password', `${USER}, project_name: p, domain_id: d`),
  },
  {
    title: 'a domain next to a project, and a user with its own',
    ...auth('password', `${USER}, project_name: p, domain_name: d, user_domain_name: u`),
  },
  {
    title: 'a domain without a project is the scope',
    ...auth('password', `${USER}, user_domain_id: u, domain_name: d`),
  },
  { title: 'the scope is the system', ...auth('password', `${USER}, user_domain_id: u, system_scope: all`) },
  { title: 'tenants', ...auth('password', `${USER}, tenant-name: t`) },
  {
    title: 'projects take precedence over tenants',
    ...auth('password', `${USER}, tenant_id: t, project-id: p`),
  },
  { title: 'user_name', ...auth('password', `${URL}, user_name: user, password: word, project_id: p`) },
  { title: 'v2password', ...auth('v2password', `${USER}, project_name: p`) },
  { title: 'v3password', ...auth('v3password', `${USER}, project_name: p, domain_id: d`) },
  { title: 'token', ...auth('token', `${URL}, token: secret, project_id: p`), differs: TOKEN_LOST },
  { title: 'auth_token', ...auth('token', `${URL}, auth_token: secret, project_id: p`) },
  { title: 'v3token', ...auth('v3token', `${URL}, token: secret, domain_id: d`), differs: TOKEN_LOST },
  {
    title: 'v2token',
    ...auth('v2token', `${URL}, token: secret, tenant_id: p`),
    differs: {
      why: 'openstacksdk renames tenant_id to a name that v2token does not support',
      ours: { name: 'cloud', auth_type: 'v2token' },
    },
  },
  {
    title: 'application credential by id',
    ...auth(
      'v3applicationcredential',
      `${URL}, application_credential_id: i, application_credential_secret: s`,
    ),
  },
  {
    title: 'application credential by name',
    ...auth(
      'v3applicationcredential',
      `${URL}, application_credential_name: n, application_credential_secret: s, username: user, user_domain_id: d`,
    ),
  },
  {
    title: 'application credential without its secret',
    ...auth('v3applicationcredential', `${URL}, application_credential_id: i`),
  },
  { title: 'no Keystone', ...auth('none', "endpoint: 'http://glance.example:9292'") },
  { title: 'auth_type None', ...auth('None', "endpoint: 'http://glance.example:9292'") },
  { title: 'an unknown auth_type', ...auth('magic', USER) },
  { title: 'no auth_url', ...auth('password', 'username: user, password: word') },
  {
    title: 'without "auth"',
    files: {
      'cwd/clouds.yaml':
        "clouds: {cloud: {auth-url: 'https://k.example', username: u, password: p, project_id: i}}",
    },
  },
  {
    title: 'the user in "auth" takes precedence over the one next to it',
    files: {
      'cwd/clouds.yaml': oneCloud('username: beside', 'password: beside', 'auth_url: https://beside.example'),
    },
  },
  {
    title: 'the project in "auth" takes precedence over the one next to it',
    files: {
      'cwd/clouds.yaml': oneCloud('project_name: beside', 'project_domain_id: beside').replace(
        'username',
        'project_name: inside\n      project_domain_id: inside\n      username',
      ),
    },
    differs: {
      why: 'openstacksdk has it the other way round',
      since: '2.0',
      ours: { 'auth.project_name': 'inside', 'auth.project_domain_id': 'inside' },
    },
  },
  {
    title: 'the project of a provider takes precedence over both',
    files: {
      'cwd/clouds.yaml': oneCloud('project_name: beside').replace(
        'username',
        'project_name: inside\n      username',
      ),
    },
    provider: { projectName: 'of-provider' },
    differs: PROJECT_OF_PROVIDER,
  },
  {
    title: 'auth_plugin',
    files: { 'cwd/clouds.yaml': oneCloud('auth_plugin: v3password') },
    differs: { why: "openstacksdk's default for auth_type hides it", ours: { auth_type: 'v3password' } },
  },
  {
    title: 'default_domain_id applies where no domain is set',
    ...auth('password', `${USER}, project_name: p, user_domain_id: u, default_domain_id: d`),
    differs: {
      why: 'keystoneauth resolves it later',
      ours: { 'auth.project_domain_id': 'd', 'auth.default_domain_id': undefined },
    },
  },
  {
    title: 'an id replaces a name',
    ...auth('password', `${USER}, user_id: u, project_id: p, project_name: n`),
    differs: {
      why: 'keystoneauth sends the ids alone, too',
      ours: { 'auth.username': undefined, 'auth.project_name': undefined },
    },
  },
  {
    title: 'an auth_url with the region in it',
    files: { 'cwd/clouds.yaml': oneCloud().replace('keystone.', '{region_name}.') },
    regionName: 'here',
  },
  {
    title: 'a password may contain braces',
    files: { 'cwd/clouds.yaml': oneCloud().replace('cloud-password', '"{a}{{b}"') },
  },
];
