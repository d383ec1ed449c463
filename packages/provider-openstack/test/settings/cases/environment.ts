import { oneCloud, PROJECT_OF_PROVIDER, type SettingsCase } from '../settings-case.ts';

const OPENRC = {
  OS_AUTH_URL: 'https://keystone.example:5000/v3',
  OS_USERNAME: 'user',
  OS_PASSWORD: 'env-password',
  OS_PROJECT_NAME: 'project',
};

/** Clouds defined or selected by `OS_*`. */
export const ENVIRONMENT: readonly SettingsCase[] = [
  {
    title: 'OS_* define the cloud envvars',
    env: {
      ...OPENRC,
      OS_USER_DOMAIN_NAME: 'Default',
      OS_PROJECT_DOMAIN_ID: 'default',
      OS_REGION_NAME: 'r',
      OS_INTERFACE: 'internal',
    },
  },
  {
    title: 'envvars is the default, even with a file',
    env: OPENRC,
    files: { 'cwd/clouds.yaml': oneCloud() },
  },
  {
    title: 'a cloud of the file by its name, next to OS_*',
    env: OPENRC,
    files: { 'cwd/clouds.yaml': oneCloud() },
    cloud: 'cloud',
  },
  { title: 'envvars by its name', env: OPENRC, files: { 'cwd/clouds.yaml': oneCloud() }, cloud: 'envvars' },
  { title: 'OS_CLOUD_NAME', env: { ...OPENRC, OS_CLOUD_NAME: 'mine' }, cloud: 'mine' },
  {
    title: 'OS_CLOUD_NAME is the name of a cloud in the file',
    env: { ...OPENRC, OS_CLOUD_NAME: 'cloud' },
    files: { 'cwd/clouds.yaml': oneCloud() },
  },
  {
    title: 'a cloud of the file is called envvars',
    files: { 'cwd/clouds.yaml': oneCloud().replace('  cloud:', '  envvars:') },
  },
  {
    title: 'OS_CLOUD selects a cloud',
    env: { OS_CLOUD: 'cloud' },
    files: { 'cwd/clouds.yaml': `${oneCloud()}  other: {}\n` },
  },
  {
    title: 'OS_CLOUD selects a cloud, next to other OS_*',
    env: { ...OPENRC, OS_CLOUD: 'cloud' },
    files: { 'cwd/clouds.yaml': oneCloud() },
  },
  {
    title: 'OS_CLOUD names an unknown cloud',
    env: { OS_CLOUD: 'none' },
    files: { 'cwd/clouds.yaml': oneCloud() },
  },
  {
    title: 'selectors alone define no cloud',
    env: { OS_REGION_NAME: 'of-env' },
    files: { 'cwd/clouds.yaml': oneCloud() },
  },
  {
    title: 'variables of other programs define no cloud',
    env: { OS_TEST_PATH: 'x', OS_STDOUT_CAPTURE: '1', OS_LOG_PATH: 'y' },
    files: { 'cwd/clouds.yaml': oneCloud() },
  },
  {
    title: 'older names of OS_*',
    env: { ...OPENRC, OS_PROJECT_NAME: '', OS_TENANT_NAME: 'tenant', OS_ENDPOINT_TYPE: 'internalURL' },
    differs: {
      why: 'keystoneauth strips URL later, and an empty OS_PROJECT_NAME hides OS_TENANT_NAME from openstacksdk',
      ours: {
        'auth.project_name': 'tenant',
        'image.interface': 'internal',
        'object_store.interface': 'internal',
      },
    },
  },
  {
    title: 'a token in OS_*',
    env: {
      OS_AUTH_TYPE: 'v3token',
      OS_AUTH_URL: 'https://k.example/v3',
      OS_TOKEN: 'env-token',
      OS_PROJECT_ID: 'id',
    },
  },
  {
    title: 'TLS and time limit in OS_*',
    env: { ...OPENRC, OS_CACERT: '/ca.pem', OS_CERT: '/c.pem', OS_KEY: '/k.pem', OS_API_TIMEOUT: '7' },
    differs: { why: 'openstacksdk passes text on, with which requests fails', ours: { api_timeout: 7 } },
  },
  { title: 'OS_INSECURE', env: { ...OPENRC, OS_INSECURE: 'True' } },
  { title: 'OS_INSECURE, but not with a number', env: { ...OPENRC, OS_INSECURE: '1' } },
  {
    title: 'OS_PROFILE',
    env: { ...OPENRC, OS_PROFILE: 'rackspace', OS_REGION_NAME: 'ORD' },
    differs: {
      why: 'in openstacksdk the defaults of every cloud hide the profile of this one',
      ours: {
        image_format: 'vhd',
        image_api_use_tasks: true,
        'disable_vendor_agent.vm_mode': 'hvm',
        'disable_vendor_agent.xenapi_use_agent': 'False',
      },
    },
  },
  {
    title: 'the provider overrides the environment',
    env: OPENRC,
    provider: { password: 'of-provider', projectName: 'of-provider' },
    differs: PROJECT_OF_PROVIDER,
  },
  {
    title: 'empty variables',
    env: { OS_USERNAME: '', OS_PASSWORD: '' },
    files: { 'cwd/clouds.yaml': oneCloud() },
    differs: {
      why: 'openstacksdk defines an empty cloud, which lacks an auth_url',
      ours: { name: 'cloud' },
    },
  },
  {
    title: 'an openrc whose region is empty',
    env: { ...OPENRC, OS_REGION_NAME: '' },
    regionName: 'r',
    differs: { why: 'openstacksdk treats it as the only region, without a name', ours: {} },
  },
];
