import { oneCloud, type SettingsCase } from '../settings-case.ts';

/** Endpoints, TLS, formats. */
export const SERVICES: readonly SettingsCase[] = [
  {
    title: 'interface',
    files: { 'cwd/clouds.yaml': oneCloud('interface: admin', 'image_interface: internal') },
  },
  {
    title: 'endpoint_type',
    files: { 'cwd/clouds.yaml': oneCloud('endpoint_type: internal', 'image_endpoint_type: admin') },
  },
  {
    title: 'image_region_name',
    files: { 'cwd/clouds.yaml': oneCloud('region_name: one', 'image_region_name: two') },
  },
  {
    title: 'image_service_type and image_service_name',
    files: {
      'cwd/clouds.yaml': oneCloud(
        'image_service_type: images',
        'image-service-name: Glance',
        'service_name: ignored',
      ),
    },
  },
  {
    title: 'image_endpoint_override',
    files: {
      'cwd/clouds.yaml': oneCloud(
        "image_endpoint_override: 'https://{region_name}.example/v2'",
        'image_endpoint: ignored',
      ),
    },
    regionName: 'one',
  },
  {
    title: 'image_endpoint',
    files: { 'cwd/clouds.yaml': oneCloud('image_endpoint: https://images.example') },
  },
  {
    title: 'object_store_endpoint_override',
    files: {
      'cwd/clouds.yaml': oneCloud(
        'object_store_endpoint_override: https://swift.example/v1',
        'object_store_interface: internal',
      ),
    },
  },
  { title: 'cacert', files: { 'cwd/clouds.yaml': oneCloud('cacert: ~/ca.pem') } },
  { title: 'cert and key', files: { 'cwd/clouds.yaml': oneCloud('cert: /c.pem', 'key: ~/k.pem') } },
  { title: 'a key without a cert', files: { 'cwd/clouds.yaml': oneCloud('key: /k.pem') } },
  {
    title: 'doubled braces',
    files: { 'cwd/clouds.yaml': oneCloud('image_service_name: "{{x}}{region_name}"') },
    regionName: 'r',
  },
  { title: 'a cert that contains the key', files: { 'cwd/clouds.yaml': oneCloud('cert: /c.pem') } },
  { title: 'verify', files: { 'cwd/clouds.yaml': oneCloud('verify: no', 'cacert: /ca.pem') } },
  {
    title: 'insecure takes precedence over verify',
    files: { 'cwd/clouds.yaml': oneCloud('verify: true', 'insecure: true') },
  },
  { title: 'not insecure', files: { 'cwd/clouds.yaml': oneCloud('insecure: false') } },
  { title: 'api_timeout', files: { 'cwd/clouds.yaml': oneCloud('api_timeout: 30') } },
  {
    title: 'an old name of the timeout',
    files: { 'cwd/clouds.yaml': oneCloud('api_timeout: 30', 'glance_timeout: 45') },
    differs: { why: 'openstacksdk keeps it as text', ours: { api_timeout: 45 } },
  },
  { title: 'image_format', files: { 'cwd/clouds.yaml': oneCloud('image_format: raw') } },
  { title: 'image_api_use_tasks', files: { 'cwd/clouds.yaml': oneCloud('image_api_use_tasks: yes') } },
  {
    title: 'disable_vendor_agent',
    files: {
      'cwd/clouds.yaml': oneCloud('disable_vendor_agent: {vm-mode: xen, xenapi_use_agent: false, level: 3}'),
    },
    differs: {
      why: 'shade converted it to text later, with str()',
      ours: { 'disable_vendor_agent.xenapi_use_agent': 'False' },
    },
  },
];
