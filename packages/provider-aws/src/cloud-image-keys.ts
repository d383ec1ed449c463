import { ImageError } from '@nodepool-builder/image-builder';
import {
  type CloudImageEntry,
  type CloudImageKeys,
  combineFilters,
  type FilterEntry,
} from '@nodepool-builder/image-builder/module-kit';

/** Filters of DescribeImages that have another name among ours. */
const NAMES: Readonly<Record<string, string>> = {
  name: 'name',
  architecture: 'architecture',
  'owner-id': 'owner',
  'image-type': 'property:image-type',
  'root-device-type': 'property:root-device-type',
  'virtualization-type': 'property:virtualization-type',
  hypervisor: 'property:hypervisor',
};

/** Our own keys, which may stand among those of AWS. */
const OWN = /^(?:image-name|tag|owner|visibility|created-after|not-older-than|property:.+)$/;

/** Filters of which only one value leaves anything, and that value, which holds for all candidates. */
const ALWAYS: Readonly<Record<string, string>> = { state: 'available' };

/** Translates one filter of DescribeImages, as nodepool has it. @throws ImageError `invalid-filter` */
function translate({ name, values }: FilterEntry): readonly FilterEntry[] {
  const known = NAMES[name];
  if (known !== undefined && !(known !== 'name' && values.some((value) => /[*?]/.test(value)))) {
    return [{ name: known, values }];
  }
  if (OWN.test(name)) return [{ name, values }];
  if (name.startsWith('tag:') && !values.some((value) => /[*?]/.test(value))) {
    return [{ name: `property:${name.slice(4)}`, values }];
  }
  if (name === 'is-public') {
    return [
      { name: 'visibility', values: values.map((value) => (/^true$/i.test(value) ? 'public' : 'private')) },
    ];
  }
  if (ALWAYS[name] !== undefined && values.includes(ALWAYS[name])) return [];
  const reason = `the filter "${name}" with the values "${values.join('", "')}" has no equivalent here`;
  const remedy =
    'use name, architecture, owner-id, is-public, tag:KEY without wildcards, or the keys of "latest --filter"';
  throw new ImageError('invalid-filter', `${reason}; ${remedy}`);
}

/** Filters of AWS and our own keys may mean the same: an image must match both. */
function filtersOf({ 'image-filters': filters = [] }: CloudImageEntry): readonly FilterEntry[] {
  const groups = Map.groupBy(filters, ({ name }) => name).values();
  return combineFilters(...Array.from(groups, (group) => group.flatMap(translate)));
}

/** nodepool's spelling of a cloud image of its driver `aws`. */
export const AWS_CLOUD_IMAGES: CloudImageKeys = {
  properties: {},
  filters: filtersOf,
};
