import { oneCloud, PROJECT_OF_PROVIDER, type SettingsCase } from '../settings-case.ts';

const VENDORS = `
public-clouds:
  site:
    auth: {auth_url: 'https://{region_name}.example/v3', user_domain_name: Site}
    regions: [north, south]
    image_format: raw
    disable_vendor_agent: {vm_mode: hvm, xenapi_use_agent: 'False'}
`;
const ON_PROFILE = `
clouds:
  mine:
    profile: site
    auth: {username: user, password: word, project_name: project}
`;
const TWO_REGIONS = oneCloud(
  'image_format: raw',
  'regions:',
  '- one',
  '- name: two',
  '  values: {image-format: vhd, project_name: of-region, auth: {user_domain_id: of-region}}',
);

/** Profiles, clouds, regions, and the provider. */
export const MERGING: readonly SettingsCase[] = [
  {
    title: 'a profile of clouds-public.yaml',
    files: { 'cwd/clouds.yaml': ON_PROFILE, 'cwd/clouds-public.yaml': VENDORS },
  },
  {
    title: 'a profile of clouds-public.yaml, in another of its regions',
    files: { 'cwd/clouds.yaml': ON_PROFILE, 'cwd/clouds-public.yaml': VENDORS },
    regionName: 'south',
  },
  {
    title: 'a region that the profile does not have',
    files: { 'cwd/clouds.yaml': ON_PROFILE, 'cwd/clouds-public.yaml': VENDORS },
    regionName: 'West',
  },
  {
    title: 'a built-in profile',
    files: { 'cwd/clouds.yaml': oneCloud('profile: rackspace') },
    regionName: 'ORD',
  },
  {
    title: 'a built-in profile by the older key "cloud"',
    files: { 'cwd/clouds.yaml': oneCloud('cloud: rackspace') },
  },
  {
    title: 'a region of a built-in profile in lower case',
    files: { 'cwd/clouds.yaml': oneCloud('profile: rackspace') },
    regionName: 'dfw',
  },
  {
    title: 'regions of the cloud replace those of the profile',
    files: { 'cwd/clouds.yaml': oneCloud('profile: rackspace', 'regions: [mine]') },
    regionName: 'mine',
  },
  {
    title: 'a site may replace a built-in profile',
    files: {
      'cwd/clouds.yaml': oneCloud('profile: rackspace'),
      'cwd/clouds-public.yaml': 'public-clouds: {rackspace: {image_format: raw}}',
    },
  },
  {
    title: 'the cloud overrides its profile',
    files: {
      'cwd/clouds.yaml': oneCloud(
        'profile: rackspace',
        'image_format: qcow2',
        'image-api-use-tasks: false',
        'disable_vendor_agent: {}',
      ),
    },
  },
  {
    title: 'an unknown profile is ignored',
    files: { 'cwd/clouds.yaml': oneCloud('profile: nobody-knows') },
  },
  { title: 'region_name of the cloud', files: { 'cwd/clouds.yaml': oneCloud('region-name: one') } },
  {
    title: 'another region than region_name of the cloud',
    files: { 'cwd/clouds.yaml': oneCloud('region_name: one') },
    regionName: 'two',
  },
  {
    title: '"regions" takes precedence over region_name',
    files: { 'cwd/clouds.yaml': oneCloud('region_name: one', 'regions: [two, three]') },
  },
  {
    title: 'several regions in one text',
    files: { 'cwd/clouds.yaml': oneCloud('region_name: one,two') },
    regionName: 'two',
  },
  { title: 'region_name as a list', files: { 'cwd/clouds.yaml': oneCloud('region_name: [one, two]') } },
  {
    title: 'any region of a cloud without a list',
    files: { 'cwd/clouds.yaml': oneCloud() },
    regionName: 'anywhere',
  },
  { title: 'the first of "regions" is the default', files: { 'cwd/clouds.yaml': TWO_REGIONS } },
  {
    title: 'the values of a region take precedence over those of the cloud',
    files: { 'cwd/clouds.yaml': TWO_REGIONS },
    regionName: 'two',
  },
  {
    title: 'a region with other keys',
    files: { 'cwd/clouds.yaml': oneCloud('regions: [{name: one, image_format: raw}]') },
  },
  { title: 'a region without a name', files: { 'cwd/clouds.yaml': oneCloud('regions: [{values: {}}]') } },
  {
    title: 'the provider overrides all',
    cloud: 'cloud',
    files: { 'cwd/clouds.yaml': oneCloud('api_timeout: 10', 'project_name: of-cloud') },
    provider: {
      username: 'u',
      password: 'p',
      authUrl: 'https://other.example:5000/v2.0',
      projectName: 'of-provider',
      apiTimeout: 20,
    },
    differs: PROJECT_OF_PROVIDER,
  },
  {
    title: 'the provider overrides the password alone',
    cloud: 'cloud',
    files: { 'cwd/clouds.yaml': oneCloud('project_id: of-cloud') },
    provider: { password: 'of-provider' },
  },
  {
    title: 'a provider without any file',
    provider: { username: 'u', password: 'p', authUrl: 'https://other.example:5000/v2.0', projectId: '42' },
    regionName: 'r',
    differs: {
      why: 'openstacksdk calls it "defaults"; messages are better with the name of the provider',
      ours: { name: 'provider' },
    },
  },
  {
    title: 'a provider with credentials next to a file with several clouds',
    files: { 'cwd/clouds.yaml': 'clouds: {a: {image_format: raw}, b: {}}' },
    provider: { username: 'u', password: 'p', authUrl: 'https://other.example:5000/v2.0', projectId: '42' },
    differs: { why: 'openstacksdk has no name for it', ours: { name: 'provider' } },
  },
  {
    title: 'a cloud by its name',
    files: { 'cwd/clouds.yaml': `${oneCloud()}  other: {auth: {}}\n` },
    cloud: 'cloud',
  },
  { title: 'an unknown cloud', files: { 'cwd/clouds.yaml': oneCloud() }, cloud: 'Cloud' },
  { title: 'no file', cloud: 'cloud' },
  { title: 'neither a file nor a cloud' },
  {
    title: 'dashes in keys that have a default',
    files: { 'cwd/clouds.yaml': oneCloud('image-format: raw', 'endpoint-type: internal') },
    differs: {
      why: 'openstacksdk reads endpoint_type before it replaces dashes by underscores',
      ours: { 'image.interface': 'internal', 'object_store.interface': 'internal' },
    },
  },
];
