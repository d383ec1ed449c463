import '@nodepool-builder/image-builder/testing';
